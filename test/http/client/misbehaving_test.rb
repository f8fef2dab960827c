# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"
require "support/misbehaving"

# The client against servers that misbehave: each caller has its own answer, or a clear error; nothing unsafe is sent twice.
class HTTPClientMisbehavingTest < Minitest::Test
  PATHS = ["/index.html", *Array.new(24) { |i| "/#{i}.#{%w[gif css js txt][i % 4]}" }].freeze
  # What each way leaves a caller with: everything, or errors where nothing else can be.
  WHOLE = {
    well_behaved: {}, closes_after: {n: 3}, http_10: {}, discards_second: {}, hangs_on_second: {}, interim_first: {}, head_with_body: {},
    close_delimited: {}, slow_first_byte: {seconds: 0.02}, keep_alive_max: {max: 3}, closes_kept_open: {}, goes_on_after_close: {}, times_out_idle: {},
    not_modified_with_body: {}, refuses_second: {}
  }.freeze
  # A loaded machine is slow; only where it is waited for in vain does it have to be short.
  PATIENT = {first_byte: 20, read: 20}.freeze
  TIMEOUTS = {first_byte: 2.5, read: 1}.freeze
  private_constant :PATHS, :WHOLE, :PATIENT, :TIMEOUTS

  WHOLE.each do |way, options|
    test "everything comes from a server with the habit #{way}" do
      Misbehaving.run(way, **options) do |server|
        outcomes = page(server)
        assert_equal [], outcomes.reject(&:ok?).map(&:inspect)
        assert_own outcomes
      end
    end
  end

  test "everything comes from a server that closes after each answer, and says so, or does not" do
    [{n: 1}, {n: 1, announced: true}, {n: 5, announced: true}].each do |options|
      Misbehaving.run(:closes_after, **options) { |server| assert_own page(server), all: true }
    end
  end

  %i[content_location etag type].each do |reveals|
    test "answers out of order that show it by #{reveals} are given to nobody else" do
      Misbehaving.run(:answers_out_of_order, reveals: reveals) do |server|
        client = self.client(cache: reveals == :etag)
        # Known tags are what tells.
        PATHS.each { |path| client.get(server.url(path), headers: {"Cache-Control" => "no-cache"}) } if reveals == :etag
        outcomes = [client.get(server.url(PATHS.first), headers: {"Cache-Control" => "no-cache"}), *client.get(*PATHS.drop(1).map { |path| server.url(path) }, headers: {"Cache-Control" => "no-cache"})]
        assert_own outcomes, all: true
      end
    end
  end

  %i[bad_chunk resets promises_more extra_bytes stray_line_end wrong_gzip].each do |way|
    test "with the habit #{way} each has its own answer or an error" do
      Misbehaving.run(way) { |server| assert_own page(server) }
    end
  end

  test "an origin that mixed answers up is not pipelined any more, and says why" do
    Misbehaving.run(:answers_out_of_order) do |server|
      client = self.client
      page(server, client: client)
      assert_match(/not pipelined.*belong/, client.explain(server.url))
    end
  end

  test "an origin that forgets the second of two is not pipelined, and says why" do
    Misbehaving.run(:discards_second) do |server|
      client = self.client
      page(server, client: client)
      assert_match(/not pipelined.*second of two/, client.explain(server.url))
    end
  end

  test "it is found out as well where less time is given for an answer than it takes to doubt" do
    [:discards_second, :hangs_on_second].each do |way|
      Misbehaving.run(way) do |server|
        client = self.client(timeouts: {first_byte: 0.5})
        assert_own page(server, client: client), all: true
        assert_match(/not pipelined/, client.explain(server.url), way)
      end
    end
  end

  test "what may change something is sent once, whatever becomes of it" do
    %i[resets closes_kept_open promises_more bad_chunk closes_after].each do |way|
      Misbehaving.run(way) do |server|
        client = self.client
        5.times do |i|
          client.post(server.url("/post-#{i}"), body: "x")
        rescue Hikyaku::HTTP::RequestFailed
          nil
        end
        posts = server.log.select { |entry| entry[1] == "POST" }.map { |entry| entry[2] }
        assert_equal posts.uniq, posts, way
      end
    end
  end

  test "HEAD answers with a body leave the connection unused" do
    Misbehaving.run(:head_with_body) do |server|
      client = self.client
      4.times { |i| assert_equal "", client.head(server.url("/#{i}")).body }
      assert_own page(server, client: client), all: true
    end
  end

  # On each connection it answers one request, and then says to the next that none came in time.
  class CrossesRequests < Misbehaving::WellBehaved
    def misbehave(connection, request)
      return behave(connection, request) if connection.instance_eval { @requests = @requests.to_i + 1 } == 1
      connection.write("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
      connection.close
    end
  end

  # RFC 9110, section 15.5.9.
  test "a 408 that crosses a request on a connection that was idle is its end: the request is asked on another, but for a POST" do
    Misbehaving.run(CrossesRequests.new) do |server|
      client = self.client
      bodies = Array.new(4) { |number| client.get(server.url("/#{number}")).body }
      assert_equal Array.new(4) { |number| Misbehaving.body_of("/#{number}") }, bodies
      client = self.client
      client.get(server.url("/first"))
      assert_equal 408, client.post(server.url("/post"), body: "x").status
    end
  end

  # 20 requests of each page, at random any habit at any of them.
  COUNT = Integer(ENV.fetch("HIKYAKU_TEST_RANDOM_PAGES", "200"))
  private_constant :COUNT

  # After these an answer is not there, or not whole; it is asked for once more.
  BREAKS = %i[bad_chunk closes_kept_open promises_more resets].freeze
  # Of all that was asked for, that fails at all; in timeouts that no server is to blame for, on a loaded machine; and in what nothing explains.
  MOST_FAILED, MOST_LATE, MOST_UNEXPLAINED = 0.05, 0.02, 0.0025
  private_constant :BREAKS, :MOST_FAILED, :MOST_LATE, :MOST_UNEXPLAINED

  test "random pages from servers that misbehave at random: own answers or clear errors, and errors only where no answer can be had" do
    queue = Queue.new.tap { |all| COUNT.times { |seed| all << seed } }.close
    told = Queue.new
    Array.new(16) {
      Thread.new do
        while (seed = queue.pop)
          random_page(seed).each { |outcome, path, ways| told << [seed, path, verdict(outcome, path, ways)] }
        end
      end
    }.each(&:join)
    told = Array.new(told.size) { told.pop }
    assert_equal COUNT * 20, told.size
    assert_equal [], told.select { |entry| entry.last == :wrong }.sort, "these seeds"
    found = told.group_by(&:last)
    {unexplained: MOST_UNEXPLAINED, late: MOST_LATE}.each { |what, most| assert_operator found.fetch(what, []).size, :<=, told.size * most, found[what].inspect }
    assert_operator told.count { |entry| entry.last != :own }, :<=, told.size * MOST_FAILED
  end

  private

  # @return [Array<Array(Response | Failure, String, Array<Symbol>)>] of each path what came, and the ways of misbehaving at the requests for it
  def random_page(seed)
    # What forgets a request in the middle of a connection, after it has answered two of one write, and answers on, shifts all that comes after
    # it: nobody can see that (docs/guides/slow-links.md).
    random = Misbehaving::Random.new(seed, without: [:discards_second])
    paths = random.paths(20)
    Misbehaving.run(random) do |server|
      client = self.client(timeouts: TIMEOUTS)
      first, *rest = paths
      outcomes = [*client.get([server.url(first)]), *client.get(rest.map { |path| server.url(path) })]
      ways = ways_by_path(server.log, random.taken)
      outcomes.zip(paths).map { |outcome, path| [outcome, path, ways[path]] }
    end
  end

  def ways_by_path(log, taken)
    ways = taken.to_h { |connection, count, way| [[connection, count], way] }
    counts = Hash.new(0)
    log.each_with_object(Hash.new { |all, path| all[path] = [] }) do |(connection, _, target), all|
      all[target] << ways[[connection, counts[connection] += 1]]
    end
  end

  # Whether it is its own answer, or has to be none: a server that hangs is given up, what it refuses is so, and of what breaks off twice there is none.
  def verdict(outcome, path, ways)
    error = outcome.error
    return (outcome.body == Misbehaving.body_of(path)) ? :own : :wrong if error.nil? && outcome.status == 200
    return ways.include?(:refuses) ? :refused : :wrong if error.nil?
    return :wrong unless error.is_a?(Hikyaku::HTTP::RequestFailed)
    return ways.include?(:hangs) ? :hung : :late if error.is_a?(Hikyaku::HTTP::TimedOut)
    (ways.count { |way| BREAKS.include?(way) } > 1) ? :broken : :unexplained
  end

  def client(cache: false, timeouts: PATIENT) = Hikyaku::HTTP::Client.new(memory: nil, proxy: nil, timeouts: timeouts, cache: cache)

  def page(server, client: nil)
    client ||= self.client
    first, *rest = PATHS
    [*client.get([server.url(first)]), *client.get(rest.map { |path| server.url(path) })]
  end

  def assert_own(outcomes, all: false)
    outcomes.zip(PATHS) do |outcome, path|
      if outcome.error
        refute all, outcome.error.message
        assert_kind_of Hikyaku::HTTP::RequestFailed, outcome.error
      elsif outcome.ok?
        assert_equal Misbehaving.body_of(path), outcome.body, path
      end
    end
  end
end
