# frozen_string_literal: true

require "test_helper"
require "hikyaku/client/event_source"
require "support/access_tokens"
require "support/client_process"
require "support/counting_client"
require "support/http_client"
require "support/protocol_smoke"
require "support/protocol_test"
require "support/puma_server"
require "support/self_signed"
require "support/snippets"

# `plugin :hikyaku`: Puma as its users start it, and the hub beside it.
class PumaPluginTest < Minitest::Test
  SUBSCRIBERS = 5_000
  RESTARTS = 10

  def teardown
    @clients&.close
    @publisher&.kill
    @server&.stop
  end

  def serve(...) = @server = PumaServer.new(...)

  def publish(number) = @server.get("/publish/public/#{number}")

  # Publishes numbers through the workers, one after the other, each until it is known to be published.
  #
  # @return [Thread] which gives how many there were, when it is told to stop
  def publish_without_end
    @publisher = Thread.new do
      number = 0
      until Thread.current[:stop]
        number += 1 if published?(number)
        Thread.current[:number] = number
      end
      number
    end
  end

  # A worker that ends may close a connection that it has not read from.
  def published?(number)
    publish(number).start_with?("#")
  rescue SystemCallError, EOFError, HttpClient::TooLate
    false
  end

  # Whether or not anybody has taken notice of it.
  def gone?(pid)
    File.read("/proc/#{pid}/stat").match?(/\) Z /)
  rescue SystemCallError
    true
  end

  test "ten phased restarts drop no subscriber, and each gets every event once and in order" do
    skip_unless_available("cc")
    serve("hikyaku anonymous: true, max_connections_per_address: 1_000_000", workers: 2, preload: false)
    hub = @server.hub
    workers = @server.workers
    @clients = CountingClient.new(@server.port, CountingClient.affordable(SUBSCRIBERS), "#{@server.path}?match=/news")
    publish_without_end
    newcomers = Array.new(RESTARTS) do
      @server.phased_restart
      @server.follow
    end
    number = @publisher[:number]
    @server.await("one more") { @publisher[:number] > number + 1 }
    @publisher[:stop] = true
    published = @publisher.value
    counts = @server.await("all events to arrive") { @clients.counts.then { |all| all if all.least >= published } }
    assert_equal [published, published, 0, 0], counts.to_a
    assert_operator published, :>, RESTARTS
    newcomers.each_with_index do |stream, index|
      numbers = [stream.next.data.to_i]
      numbers << stream.next.data.to_i until numbers.last == published - 1
      assert_equal (numbers.first...published).to_a, numbers, "who came after restart #{index}"
    end
    assert_equal hub, @server.hub
    assert_empty workers & @server.workers
    puts "\n#{@clients.size} subscribers, #{published} events, #{RESTARTS} phased restarts"
  end

  test "a stream is changed by whatever worker is asked, also by one that came after it in a phased restart" do
    serve("hikyaku anonymous: true", workers: 2, preload: false)
    client = HttpClient.new(@server.port)
    stream = client.stream("GET", "#{@server.path}?match=/other", headers: {"hikyaku-stream" => "1"})
    workers = @server.workers
    change = lambda do |*topics, **fields|
      body = URI.encode_www_form(topics.map { |topic| ["match", topic] } + fields.to_a)
      client.request("POST", "#{@server.path}/streams/#{stream["hikyaku-stream"]}", headers: {"content-type" => "application/x-www-form-urlencoded"}, body: body)
    end
    seen = publish(1)
    publish(2)
    @server.phased_restart
    assert_empty workers & @server.workers
    response = change.call("/other", "/news", last_event_id: seen)
    assert_equal 204, response.status, response.body
    publish(3)
    assert_equal %w[2 3], stream.take(2).map(&:data)
    @server.phased_restart
    assert_equal 204, change.call("/news").status
    publish(4)
    assert_equal "4", stream.next.data
    stream.close
  end

  MODES = {
    "single mode" => {},
    "a cluster" => {workers: 2, preload: false},
    "a cluster that is preloaded" => {workers: 2, preload: true}
  }.freeze

  test "the hub ends with Puma, after the workers, and its streams with a time to come back" do
    ["TERM", "INT"].product(["single mode", "a cluster"]).each do |signal, name|
      serve(**MODES[name])
      stream = @server.follow
      hub = @server.hub
      sidecar = @server.sidecar
      assert_match(/\A#/, publish(1))
      @server.signal(signal)
      @server.status
      assert gone?(hub), "#{name}, #{signal}"
      assert_equal [%w[1], true], [stream.rest.map(&:data), stream.retry_after > 0], name
      refute_path_exists sidecar
      refute_match(/has ended|WARN|ERROR|cut off/, @server.log)
      @server.stop
    end
  end

  test "the hub ends with Puma, even when that is killed" do
    MODES.first(2).each do |name, mode|
      serve(**mode)
      stream = @server.follow
      hub = @server.hub
      sidecar = @server.sidecar
      @server.signal("KILL")
      @server.status
      stream.rest
      @server.await("the end of the hub (#{name})") { gone?(hub) }
      refute_path_exists sidecar
      @server.stop
    end
  end

  test "a hot restart drops no subscriber: the new Puma finds the hub of the old one" do
    MODES.except("a cluster").each do |name, mode|
      serve(**mode)
      stream = @server.follow
      hub = @server.hub
      2.times do |number|
        @server.hot_restart
        assert_match(/\A#/, publish(number))
      end
      assert_equal %w[0 1], stream.take(2).map(&:data), name
      assert_equal hub, @server.hub
      Process.kill(:KILL, hub)
      @server.await("another hub") { @server.hub != hub }
      assert_match(/\A#/, publish(2))
      last = @server.hub
      @server.stop
      assert gone?(last)
    end
  end

  test "after a hot restart with other settings there is another hub" do
    serve(workers: 1)
    stream = @server.follow
    hub = @server.hub
    @server.write("puma.rb", File.read("#{@server.folder}/puma.rb").sub("anonymous: true", "anonymous: true, path: '/hub'"))
    @server.hot_restart
    assert gone?(hub)
    stream.rest
    stream = @server.client.stream("GET", "/hub?match=/news")
    publish(1)
    assert_equal "1", stream.next.data
  end

  test "when the plugin has gone after a hot restart, so has the hub" do
    serve
    hub = @server.hub
    stream = @server.follow
    @server.write("puma.rb", File.read("#{@server.folder}/puma.rb").lines.grep_v(/hikyaku/).join)
    @server.hot_restart
    stream.rest
    @server.await("the end of the hub") { gone?(hub) }
    assert_match(/NoHub|Absent/, publish(1))
  end

  test "a hub that is killed is followed by another, which subscribers come back to" do
    serve(workers: 2)
    source = Hikyaku::EventSource.new("http://127.0.0.1:#{@server.port}#{@server.path}", params: {match: "/news"}, retry_seconds: 0.1)
    came = Queue.new
    reader = Thread.new { source.each { |event| came << event.data } }
    @server.await("the subscriber") { publish("x#{rand}") && !came.empty? }
    hub = @server.hub
    Process.kill(:KILL, hub)
    @server.await("another hub") { @server.hub != hub }
    came.clear
    @server.await("the subscriber to come back") { publish("x#{rand}") && !came.empty? }
    assert_match(/has ended (?:by the signal KILL|in a way that is not known)/, @server.log)
  ensure
    reader&.kill
  end

  test "workers, and what they start, publish to the hub and close the streams of a subject" do
    serve("hikyaku subscriber_key: 's' * 40, issuer: 'me', resource_identifier: 'https://hub.example.com/.well-known/mercure'", workers: 1, files: {"shell.sh" => <<~SH})
      #!/bin/sh
      exec bundle exec ruby -e 'require "hikyaku"; print Hikyaku.publish("/news", "from a shell", private: true)'
    SH
    token = AccessTokens.token(:subscriber, "/news", key: "s" * 40, iss: "me")
    stream = @server.client.stream("GET", "#{@server.path}?match=/news", headers: {"authorization" => "Bearer #{token}"})
    ids = [@server.get("/publish/private/1"), @server.get("/shell")]
    assert_equal ids.zip(["1", "from a shell"]), stream.take(2).map { |event| [event.id, event.data] }
    assert_equal "1", @server.get("/disconnect/user-1")
    assert_empty stream.rest
  end

  test "two Pumas on one machine have a hub each" do
    one = serve
    other = PumaServer.new
    streams = [one, other].map(&:follow)
    [one, other].each_with_index { |server, index| server.get("/publish/public/#{index}") }
    assert_equal %w[0 1], streams.map { |stream| stream.next.data }
    assert_equal 2, [one.hub, other.hub].uniq.size
  ensure
    other&.stop
  end

  test "a folder that the environment names is where the hub is, for other processes to know" do
    Dir.mktmpdir do |folder|
      serve(env: {"HIKYAKU_SIDECAR" => "#{folder}/hub"})
      stream = @server.follow
      output, status = ClientProcess.run("bundle", "exec", "ruby", "-I#{PumaServer::ROOT}/lib", "-e", 'require "hikyaku"; print Hikyaku.publish("/news", "elsewhere")',
        env: {"HIKYAKU_SIDECAR" => "#{folder}/hub", "BUNDLE_GEMFILE" => "#{PumaServer::ROOT}/Gemfile"})
      assert_predicate status, :success?
      assert_equal [output, "elsewhere"], stream.next.then { |event| [event.id, event.data] }
      @server.stop
      assert_empty Dir.children("#{folder}/hub")
    end
  end

  test "workers that are forked from a worker have the hub too" do
    serve("hikyaku anonymous: true\nfork_worker 0", workers: 2, preload: false)
    hub = @server.hub
    stream = @server.follow
    booted = @server.log.scan("booted").size
    @server.signal("URG")
    @server.await("the workers to be forked again") { @server.log.scan("booted").size > booted }
    10.times { |number| publish(number) }
    assert_equal (0...10).map(&:to_s), stream.take(10).map(&:data)
    assert_equal hub, @server.hub
    Process.kill(:KILL, hub)
    @server.await("another hub") { @server.hub != hub }
  end

  test "over TLS the streams are given on, and do not hold up a phased restart" do
    Dir.mktmpdir do |folder|
      %w[key cert].zip(SelfSigned.pair) { |name, part| File.write("#{folder}/#{name}.pem", part.to_pem) }
      serve("hikyaku anonymous: true\nworker_shutdown_timeout 300", workers: 2, preload: false, bind: "ssl://127.0.0.1:PORT?key=#{folder}/key.pem&cert=#{folder}/cert.pem")
      client = HttpClient.new(@server.port, tls: true)
      stream = client.stream("GET", "#{@server.path}?match=/news")
      client.request("GET", "/publish/public/1")
      assert_equal "1", stream.next.data
      @server.phased_restart
      assert_empty stream.rest
      stream = client.stream("GET", "#{@server.path}?match=/news")
      client.request("GET", "/publish/public/2")
      assert_equal "2", stream.next.data
      assert_equal "https://localhost:#{@server.port}#{@server.path}", @server.about["hub_url"]
    end
  end

  test "a server without its bundle runs the hub with it" do
    serve("hikyaku anonymous: true\nprune_bundler\nextra_runtime_dependencies ['hikyaku']", workers: 1, preload: false)
    assert_includes @server.log, "Pruning Bundler environment"
    stream = @server.follow
    publish(1)
    assert_equal "1", stream.next.data
  end

  test "what the guide tells to write works" do
    files = Snippets.of("docs/guides/puma.md").filter_map { |snippet| [File.basename($1), snippet.code] if snippet.code =~ /\A# (\S+)/ }.to_h
    assert_equal %w[config.ru puma.rb], files.keys.sort
    serve("", workers: 2, files: {**files, "puma.rb" => "bind 'tcp://127.0.0.1:PORT'\n#{files["puma.rb"]}"})
    stream = @server.follow("https://example.com/visits")
    assert_equal "hello\n", @server.get("/x")
    assert_equal "/x", stream.next.data
  end

  WRONG = {
    "" => /nobody could use this hub/,
    "hikyaku anonymous: true, histroy: 1" => /unknown setting histroy; did you mean history\?/,
    "hikyaku anonymous: true, listen: ':80'" => /reached through Puma/,
    "hikyaku subscriber_key: 'file:/nowhere.pem'" => %r{/nowhere\.pem}
  }.freeze

  test "a wrong configuration stops Puma before it serves, with one sentence" do
    WRONG.each do |line, sentence|
      serve(line, wait: false)
      status = @server.status
      refute_predicate status, :success?, line
      assert_equal 1, @server.log.lines.grep(/ERROR: Hikyaku: /).grep(sentence).size, @server.log
      refute_match(/Listening|backtrace|\.rb:\d+:in/, @server.log)
      assert_nil @server.sidecar
      @server.stop
    end
  end

  test "no list of processes shows a secret, nor does Puma when it is asked for its options" do
    secret = "nobody but the hub may know this one"
    serve("hikyaku publisher_key: #{secret.inspect}, subscriber_key: #{secret.inspect}", workers: 1, env: {"PUMA_LOG_CONFIG" => "1"})
    key = @server.about["key"]
    shown = Dir["/proc/[0-9]*/cmdline"].map { |path| File.binread(path) rescue "" }.join # rubocop:disable Style/RescueModifier
    environments = [@server.pid, @server.hub, *@server.workers].map { |pid| File.binread("/proc/#{pid}/environ") }.join
    assert_includes shown, "unix:#{@server.sidecar}/hub.sock"
    [secret, key].each { |each| refute_includes shown + environments + @server.log, each }
  end
end

# The whole protocol in little, through workers.
class PumaPluginProtocolTest < Protocol::Test
  include ProtocolSmoke

  SETTINGS = "hikyaku publisher_key: #{AccessTokens::SECRETS[:publisher].inspect}, subscriber_key: #{AccessTokens::SECRETS[:subscriber].inspect}, " \
    "issuer: #{AccessTokens::ISSUER.inspect}, resource_identifier: #{AccessTokens::HUB_URL.inspect}, subscriptions: true, anonymous: true".freeze

  test "in single mode" do
    @own = PumaServer.new(SETTINGS)
    smoke
  end

  test "in a cluster" do
    @own = PumaServer.new(SETTINGS, workers: 2)
    smoke
  end

  test "with settings of the environment and a file" do
    @own = PumaServer.new("", files: {"config/hikyaku.yml" => "issuer: #{AccessTokens::ISSUER}\nresource_identifier: #{AccessTokens::HUB_URL}\nsubscriptions: true\n"},
      env: {"HIKYAKU_PUBLISHER_KEY" => AccessTokens::SECRETS[:publisher], "HIKYAKU_SUBSCRIBER_KEY" => AccessTokens::SECRETS[:subscriber], "HIKYAKU_ANONYMOUS" => "1"})
    smoke
  end
end
