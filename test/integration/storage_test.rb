# frozen_string_literal: true

require "support/integration"
require "support/access_tokens"
require "hikyaku/client/event_source"
require "hikyaku/client/publisher"
require "open3"

# A hub that keeps its history: kill -9 and restarts on the same port, under load.
class StorageTest < Integration::Test
  TOPIC = "https://example.com/kept"
  SECRET = "!ChangeThisMercureHubJWTSecretKey!"
  READERS = 20
  KILLS = 3

  def setup
    super
    @folder = Dir.mktmpdir("storage")
  end

  def teardown
    super
    FileUtils.remove_entry(@folder)
  end

  test "over kill -9 and again, readers come back by Last-Event-ID and have everything, once, in order; nothing acknowledged is lost" do
    hub = start_hub("--storage", @folder, "--max-connections-per-address", "1000")
    readers = Array.new(READERS) { read(hub.url) }
    writers = Array.new(2) { |number| write(hub.url, "w#{number}") }
    KILLS.times do
      sleep 0.7
      hub.stop("KILL")
      hub.start
    end
    sleep 0.5
    acknowledged = writers.flat_map { |writer| writer[:stop].call }
    hub.publish([["topic", TOPIC], ["data", "end"]])
    everything = follow(hub, TOPIC, last_event_id: "earliest").until("end").map { |event| [event.id, event.data] }
    assert_empty acknowledged - everything.map(&:last), "acknowledged, and lost"
    assert_equal everything.map(&:first).uniq, everything.map(&:first), "an id made twice"
    2.times { |name| assert_equal numbers(everything, name).sort, numbers(everything, name), "out of order" }
    readers.each do |events|
      eventually("the end, for a reader") { events.last&.last == "end" }
      assert_empty events.select { |type, *| type == "mercure" }, "told that something is missing"
      got = events.map { |_, id, data| [id, data] }
      assert_equal "end", got.pop.last
      assert_empty everything - got, "missing"
      assert got == everything, "twice, or out of order"
    end
  end

  test "a subject that was revoked stays so over kill -9, and newer tokens go on" do
    hub = start_hub("--storage", @folder)
    old = token_of_ann(hub)
    follow(hub, TOPIC, token: old)
    assert_equal 1, Hikyaku::Publisher.new(hub.url, key: SECRET).disconnect(subject: "ann", revoke: true)
    hub.stop("KILL")
    hub.start
    answer = HttpClient.new(hub.port).stream("GET", URI(subscription(hub, TOPIC)).request_uri, headers: {"authorization" => "Bearer #{old}"})
    assert_equal 401, answer.status
    follow(hub, TOPIC, token: token_of_ann(hub))
  end

  test "a stop in order keeps everything, and a hub that was never told of storage keeps nothing" do
    hub = start_hub("--storage", @folder, "--storage-level", "synced")
    id = hub.publish([["topic", TOPIC], ["data", "kept"]])
    assert_predicate hub.stop, :success?
    hub.start
    assert_equal [[id, "kept"]], everything_of(hub)
    assert_predicate hub.stop, :success?
    forgetful = start_hub
    forgetful.publish([["topic", TOPIC], ["data", "gone"]])
    forgetful.stop
    forgetful.start
    assert_empty everything_of(forgetful)
  end

  test "after a loss of power a reader from before is told, no id is given twice, and the log says how many updates may be missing" do
    hub = start_hub("--storage", @folder)
    before = Array.new(5) { |number| hub.publish([["topic", TOPIC], ["data", "update #{number}"]]) }
    hub.stop("KILL")
    segment = Dir["#{@folder}/hub/*.seg"].max
    bytes = File.binread(segment)
    at = bytes.index("update 2")
    bytes[at..] = "\0".b * (bytes.bytesize - at)
    File.binwrite(segment, bytes)
    File.unlink("#{@folder}/hub/watermark")
    hub.start
    after = Array.new(10) { |number| hub.publish([["topic", TOPIC], ["data", "new #{number}"]]) }
    assert_empty before & after
    told = follow(hub, TOPIC, last_event_id: before[1]).until("new 9").map { |event| (event.type == "mercure") ? JSON.parse(event.data)["reason"] : event.data }
    assert_equal ["lost", *Array.new(9) { |number| "new #{number}" }], told
    told = follow(hub, TOPIC, last_event_id: before[3]).until("new 9").map { |event| (event.type == "mercure") ? JSON.parse(event.data)["reason"] : event.data }
    assert_equal "unknown", told.first
    assert_match(/ERROR.*#{@folder}.*up to \d+ acknowledged updates may be missing/, hub.log)
  end

  test "a hub whose folder was deleted acknowledges nothing more as synced, and says why" do
    hub = start_hub("--storage", @folder, "--storage-level", "synced")
    hub.publish([["topic", TOPIC], ["data", "kept"]])
    FileUtils.rm_rf("#{@folder}/hub")
    error = assert_raises(RuntimeError) { hub.publish([["topic", TOPIC], ["data", "lost"]]) }
    assert_match(/\A5\d\d /, error.message)
    eventually("the reason") { hub.log.include?("while it was in use") }
  end

  test "two hubs do not share a folder: the second says so and ends" do
    start_hub("--storage", @folder)
    said, status = serve_in_vain
    assert_equal 1, status.exitstatus
    assert_match(/^hikyaku: .*another process/, said)
  end

  test "a damaged history is not passed over: the hub names segment and offset, and ends" do
    hub = start_hub("--storage", @folder)
    hub.publish([["topic", TOPIC], ["data", "precious"]])
    hub.stop
    segment = Dir["#{@folder}/hub/*.seg"].find { |file| File.binread(file).include?("precious") }
    File.binwrite(segment, File.binread(segment).sub("precious", "Precious"))
    said, status = serve_in_vain
    assert_equal 1, status.exitstatus
    assert_match(/^hikyaku: #{File.basename(segment)} is damaged at offset \d+.*hikyaku log salvage/, said)
    refute_match(/\.rb:\d+/, said)
  end

  private

  def token_of_ann(hub)
    claims = JWT.decode(hub.token(subscribe: [TOPIC]), nil, false).first
    AccessTokens.sign({"typ" => "at+jwt"}, claims.merge("sub" => "ann", "iat" => Time.now.to_f), SECRET)
  end

  # @return [Array(String, Process::Status)] what a hub has said that could not begin
  def serve_in_vain
    Open3.capture2e(*Integration::HIKYAKU, "serve", "--dev", "--engine", RunningHub::ENGINE, "--listen", "127.0.0.1:0", "--storage", @folder)
  end

  def everything_of(hub)
    hub.publish([["topic", TOPIC], ["data", "mark"]])
    follow(hub, TOPIC, last_event_id: "earliest").until("mark").map { |event| [event.id, event.data] }
  end

  # @return [Array] of [type, id, data], which grows
  def read(url)
    events = []
    source = ending(Hikyaku::EventSource.new(url, params: {match: TOPIC}, last_event_id: "earliest", retry_seconds: 0.2, max_retry_seconds: 0.5))
    Thread.new { source.each { |event| events << [event.type, event.id, event.data] } }.report_on_exception = false
    events
  end

  # Publishes numbers until told to stop; then says which were acknowledged.
  def write(url, name)
    publisher = Hikyaku::Publisher.new(url, key: SECRET)
    acknowledged = []
    stopped = false
    thread = Thread.new do
      (0..).each do |number|
        break if stopped
        publisher.publish(TOPIC, "#{name}-#{number}")
        acknowledged << "#{name}-#{number}"
        sleep 0.01
      rescue Hikyaku::PublishError
        sleep 0.05
      end
    end
    stop = -> do
      stopped = true
      thread.join(60) or raise "a writer does not end"
      publisher.close
      acknowledged
    end
    {stop: stop}
  end

  def numbers(events, name) = events.filter_map { |_, data| data[/\Aw#{name}-(\d+)\z/, 1]&.to_i }
end
