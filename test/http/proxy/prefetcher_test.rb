# frozen_string_literal: true

require "test_helper"
require "http/proxy/proxied"
require "hikyaku/http/proxy/prefetcher"

# What is fetched ahead, for whom, and for how long it is kept.
class HTTPProxyPrefetcherTest < Minitest::Test
  include Proxied

  Proxy = Hikyaku::HTTP::Proxy
  Client = Hikyaku::HTTP::Client
  Address = Hikyaku::HTTP::Address
  SAID = [["cookie", "a=b"], ["authorization", "Basic x"]].freeze
  PAGE = "http://127.0.0.1/"
  BYTES = 10_000 # of each answer
  private_constant :Proxy, :Client, :Address, :SAID, :PAGE, :BYTES

  def setup
    @client = Client.new(memory: nil, attended: true, proxy: nil, user_agent: nil, max_connections: 1)
  end

  def teardown
    @prefetcher&.close
    @client.close
  end

  test "of another origin nothing is fetched" do
    serving do |origin|
      fetch(origin, %w[/a], page: page, others: ["http://localhost:#{origin.port}/b", "https://127.0.0.1:#{origin.port}/c", "http://127.0.0.1:1/d"])
      wait_until { come?(origin, "/a") }
      assert_equal 1, @prefetcher.size
      assert_equal %w[/a], asked(origin)
    end
  end

  test "it is given once, to who says the same of who they are and of which part" do
    serving do |origin|
      {[] => true, [["cookie", "c=d"]] => false, [["authorization", "Basic y"]] => false, [["range", "bytes=0-1"]] => false, [["accept", "x"]] => true}.each do |said, given|
        fetch(origin, %w[/a], page: page)
        assert_equal given, !take(origin, "/a", said + SAID).nil?, said.inspect
        assert_nil take(origin, "/a")
      end
      fetch(origin, %w[/a], page: page)
      assert_nil take(origin, "/a", [])
      fetch(origin, %w[/a], page: page)
      assert_nil @prefetcher.take(address(origin, "/a"), headers: SAID, credentials: "bob", now: now)
    end
  end

  test "a request with further cookies takes it, and one without a cookie of it, with another value or from another browser does not" do
    agent = %w[user-agent one]
    given = {"a=b" => true, "a=b; c=d" => true, "c=d; a=b" => true, "a=b;c=d;e" => true, "c=d" => false, "a=c; b=b" => false, "a=bc" => false, "" => false}
    cases = given.map { |cookie, taken| [[agent, ["cookie", cookie]], taken] }
    cases += [%w[user-agent two], %w[authorization x], %w[range bytes=0-1]].map { |field| [[agent, %w[cookie a=b;c=d], field], false] }
    serving do |origin|
      cases.each do |said, taken|
        fetch(origin, %w[/a], page: page, said: [agent, %w[cookie a=b]])
        found = @prefetcher.take(address(origin, "/a"), headers: said, credentials: "with other cookies", now: now)
        assert_equal taken, !found.nil?, said.inspect
        @prefetcher.drop([address(origin, "/a").url])
      end
    end
  end

  test "so many are kept, and no more" do
    serving(max: 3) do |origin|
      fetch(origin, %w[/a /b /a /c /d], page: (first = page))
      wait_until { come?(origin, "/c") }
      assert_equal 3, first.resources.size
      assert_equal [3, %w[/a /b /c]], [@prefetcher.size, asked(origin)]
    end
  end

  test "so many bytes are kept: of the newest page what the browser asks for first" do
    serving(max_bytes: 3 * BYTES) do |origin|
      fetch(origin, %w[/a /b], page: page)
      wait_until { @prefetcher.bytes == 2 * BYTES }
      fetch(origin, %w[/c /d /e /f], page: page)
      wait_until { asked(origin).size == 6 && @prefetcher.size <= 3 }
      assert_equal [true, true, true, false], %w[/c /d /e /f].map { |target| !take(origin, target).nil? }
      assert_equal [nil, nil], [take(origin, "/a"), take(origin, "/b")]
    end
  end

  test "what is coming counts: when it is too much nothing more is read, and what the browser asks for first goes on to come" do
    way = Misbehaving::AsTold.new { |_, connection| connection.write("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n#{"x" * 300_000}") && :written }
    Misbehaving.run(way) do |server|
      @prefetcher = Proxy::Prefetcher.new(Proxy::HeaderFilter.new(Client::Memory.new(nil), all: true), max_bytes: 700_000)
      client = Client.new(memory: nil, attended: true, proxy: nil, max_connections: 6)
      most, watching = 0, true
      watch = Thread.new { (most = [most, @prefetcher.bytes].max) && Thread.pass while watching }
      targets = Array.new(40) { |i| "/#{i}" }
      fetch(server, targets, page: page, client: client)
      wait_until { @prefetcher.size == 2 && @prefetcher.bytes == 600_000 }
      watching = false
      watch.join
      assert_operator most, :<=, 700_000 + 6 * 65_536
      targets.first(2).each { |target| assert_equal 300_000, take(server, target).response.read.bytesize }
    ensure
      client&.close
    end
  end

  test "what nobody comes for is dropped, though nobody comes for anything" do
    serving(lifetime: 0.15) do |origin|
      fetch(origin, %w[/a /b], page: page)
      wait_until { @prefetcher.bytes == 2 * BYTES }
      wait_until { @prefetcher.size.zero? }
    end
    serving(lifetime: 5) do |origin|
      fetch(origin, %w[/c /d], page: page)
      wait_until { @prefetcher.bytes == 2 * BYTES }
      assert_nil @prefetcher.take(address(origin, "/c"), headers: SAID, credentials: "ada", now: now + 5.1)
      refute_nil @prefetcher.take(address(origin, "/d"), headers: SAID, credentials: "ada", now: now)
    end
  end

  test "what is still coming is not too old, however long it takes" do
    held = Queue.new
    serving(lifetime: 0.1, held: held) do |origin|
      fetch(origin, %w[/a], page: page)
      wait_until { come?(origin, "/a") }
      sleep 0.3
      assert_equal 1, @prefetcher.size
      held << true
      assert_equal BYTES, take(origin, "/a").response.read.bytesize
    end
  end

  test "when the browser leaves a page or turns to another, what was not sent yet never is, and what was is kept" do
    [->(first, _) { @prefetcher.leave(first) }, ->(_, _) { @prefetcher.leave }, ->(_, _) { @prefetcher.open_page("ada", from: PAGE) },
      ->(first, _) { (first.left = true) && @prefetcher.open_page("bob", from: "#{PAGE}other", to: "#{PAGE}next") }].each do |leaves|
      held = Queue.new
      serving(held: held) do |origin|
        first = page
        fetch(origin, %w[/a /b /c], page: first)
        wait_until { asked(origin) == %w[/a] }
        @prefetcher.leave(page)
        @prefetcher.open_page("bob", to: PAGE)
        @prefetcher.open_page("ada", to: "#{PAGE}other", from: "#{PAGE}next")
        @prefetcher.open_page("ada")
        assert_equal 3, @prefetcher.size
        leaves.call(first, origin)
        assert_equal 1, @prefetcher.size
        held << true
        assert_equal BYTES, take(origin, "/a").response.read.bytesize
        2.times { held << true }
        @client.get("http://#{host(origin)}/after")
        assert_equal %w[/a /after], asked(origin)
      end
    end
  end

  test "what has changed is dropped, whosever it is" do
    serving do |origin|
      fetch(origin, %w[/a /b], page: page)
      @prefetcher.drop([address(origin, "/a").url, "http://a.example/b"])
      assert_equal [true, false], [take(origin, "/a").nil?, take(origin, "/b").nil?]
    end
  end

  private

  def serving(held: nil, **options)
    fields = Proxy::HeaderFilter.new(Client::Memory.new(nil), all: true)
    @prefetcher = Proxy::Prefetcher.new(fields, **options)
    answer = lambda do |bytes|
      next unless bytes.end_with?("\r\n\r\n")
      held&.pop
      count = bytes.scan("\r\n\r\n").size - (@answered[bytes.object_id] || 0)
      @answered[bytes.object_id] = bytes.scan("\r\n\r\n").size
      "HTTP/1.1 200 OK\r\nContent-Length: #{BYTES}\r\n\r\n#{"x" * BYTES}" * count
    end
    @answered = {}
    origin = Proxied::Origin.new(&answer)
    yield origin
  ensure
    @prefetcher.close
    origin&.close
  end

  def page = Proxy::PageLog::Page.new(PAGE, prefetch: true, now: now)

  def fetch(origin, targets, page:, others: [], client: @client, said: SAID)
    urls = targets.map { |target| address(origin, target).url } + others
    inlines = urls.map { |url| Proxy::Scanner::Subresource.new(kind: :image, url: url) }
    @prefetcher.fetch(inlines, page: page, client: client, origin: address(origin, "/").origin, headers: said, credentials: "ada", now: now, url: PAGE)
  end

  def take(origin, target, said = SAID) = @prefetcher.take(address(origin, target), headers: said, credentials: "ada", now: now)

  def address(origin, target) = Address.parse("http://#{host(origin)}#{target}")

  def asked(origin) = origin.received.flat_map { |bytes| bytes.scan(/^GET (\S+)/).flatten }

  def come?(origin, target) = asked(origin).include?(target)

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
