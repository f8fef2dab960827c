# frozen_string_literal: true

require "support/native_test"
require "hikyaku/server/open_files"
require "tmpdir"

# How many connections the server of the engine in C takes, from where, and what it does when there is no room for more.
class Integration::NativeLimitsTest < Integration::NativeTest
  BOOK = Integration::BOOK

  test "an address has so many subscribers and no more; what it does beside is its own affair, and others have as many" do
    hub = start_native("--max-connections-per-address", "3")
    streams = Array.new(3) { follow(hub, BOOK) }
    2.times { assert_refused 429, hub.subscribe({match: BOOK}), retry_after: true }
    assert_equal 2, hub.metrics.fetch(%(refusals_total{reason="too_many_of_address"}))
    hub.publish(BOOK, "served")
    streams.each { |stream| assert_equal "served", stream.next.data }
    other = ending(TCPSocket.new("127.0.0.1", hub.port, "127.0.0.2"))
    other.write(subscription_to(BOOK))
    assert_equal 200, HttpClient::Connection.new(other).head(HttpClient.now + HttpClient::PATIENCE).status
    streams.first.close
    eventually("room for another") { hub.subscribe({match: BOOK}).then { |stream| stream.is_a?(EventStream) && ending(stream) } }
    refusals = hub.metrics.select { |name, count| name.start_with?("refusals_total") && !name.include?("not_found") && count > 0 }
    assert_equal [%(refusals_total{reason="too_many_of_address"})], refusals.keys
  end

  test "behind a proxy that is trusted, the address is the client's, and nobody gets another one by claiming it" do
    hub = start_native("--max-connections-per-address", "1", "--trusted-proxy", "127.0.0.1")
    from = ->(address) { hub.subscribe({match: BOOK}, headers: {"x-forwarded-for" => address}).tap { |stream| ending(stream) if stream.is_a?(EventStream) } }
    assert_equal 200, from.call("198.51.100.1").status
    assert_refused 429, from.call("198.51.100.1"), retry_after: true
    assert_refused 429, from.call("203.0.113.9, 198.51.100.1"), retry_after: true
    assert_equal 200, from.call("198.51.100.1, 198.51.100.2").status
    assert_equal 200, from.call("2001:db8::1").status
  end

  test "subscribers beyond --max-connections are told when to come back, and the hub goes on" do
    hub = start_native("--max-connections", "5")
    streams = Array.new(5) { follow(hub, BOOK) }
    10.times do
      response = hub.subscribe({match: BOOK})
      assert_refused 429, response, retry_after: true
      assert_equal "close", response["connection"], "it would hold the place of another"
    end
    hub.publish(BOOK, "on")
    streams.each { |stream| assert_equal "on", stream.next.data }
    assert_equal [5.0, 10.0], hub.metrics.values_at("subscribers", %(refusals_total{reason="too_many_in_total"}))
    streams.shift.close
    eventually("room for another") { hub.subscribe({match: BOOK}).then { |stream| stream.is_a?(EventStream) && ending(stream) } }
  end

  test "connections beyond the limit of open files are told when to come back, before they have asked, and the hub goes on" do
    hub = start_native(rlimit_nofile: 300)
    room = Hikyaku::Server::OpenFiles.for_connections(300)
    stream = follow(hub, BOOK)
    # Who has not sent a whole head would make room after a while.
    busy = Array.new(room - 1) { socket(hub).tap { |each| each.write("POST /.well-known/mercure HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx") } }
    refused = Array.new(100) { socket(hub) }
    refused.last(30).each do |asking|
      connection = HttpClient::Connection.new(asking)
      response = answer(connection)
      assert_refused 429, response, retry_after: true
      assert_equal "close", response["connection"]
      assert_nil asking.read(1)
    end
    busy.shift(2).each(&:close)
    eventually("room for another") { hub.get("/healthz").status == 200 }
    hub.publish(BOOK, "on")
    assert_equal "on", stream.next.data
    eventually("room for another") { hub.metrics.fetch(%(refusals_total{reason="too_many_connections"}), 0) >= 100 }
    assert_operator hub.descriptors.size, :<=, 300
  end

  test "when there is no room, a connection that has had nothing to say for a while gives its place to a new one" do
    hub = start_native(rlimit_nofile: 300)
    stream = follow(hub, BOOK)
    quiet = Array.new(5) { connect(hub).tap { |each| each.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n") } }
    quiet.each { |each| assert_equal 200, answer(each).status }
    Array.new(Hikyaku::Server::OpenFiles.for_connections(300) - 6) { socket(hub) }
    assert_equal 429, hub.get("/healthz").status
    sleep 1.1
    4.times { assert_equal 200, hub.get("/healthz").status }
    hub.publish(BOOK, "on")
    assert_equal "on", stream.next.data
  end

  test "an address has so many connections that ask for nothing and no more, whatever others do" do
    hub = start_native("--max-connections-per-address", "3")
    hub.get("/healthz")
    silent = Array.new(64) { socket(hub) }
    refused = Array.new(5) { HttpClient::Connection.new(socket(hub)) }
    refused.each { |each| assert_refused 429, answer(each), retry_after: true }
    other = ending(TCPSocket.new("127.0.0.1", hub.port, "127.0.0.2"))
    other.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_equal 200, HttpClient::Connection.new(other).head(HttpClient.now + HttpClient::PATIENCE).status
    silent.shift(2).each(&:close)
    eventually("room for another") { hub.get("/healthz").status == 200 }
    assert_operator hub.metrics.fetch(%(refusals_total{reason="too_many_of_address"})), :>=, 5
  end

  test "a proxy that is trusted has as many connections as it opens" do
    hub = start_native("--max-connections-per-address", "3", "--trusted-proxy", "127.0.0.1")
    Array.new(100) { socket(hub) }
    assert_equal 200, hub.get("/healthz").status
  end

  test "bodies that do not end hold so much memory and no more; what is small is served meanwhile" do
    hub = start_native
    body = "topic=#{BOOK}&data=".ljust(1_000_000, "x")
    request = publication(body, token: nil)
    before = hub.memory
    slow = Array.new(150) { socket(hub).tap { |each| write_if_open(each, request[..-2]) } }
    eventually("the refusal of most") { hub.metrics.fetch(%(refusals_total{reason="overloaded"})) >= 80 }
    hub.publish(BOOK, "on")
    assert_operator hub.memory - before, :<, 160 * 1_048_576 unless Sanitizers.wanted?
    told = slow.select { |each| each.wait_readable(0) }
    assert_operator told.size, :>=, 80
    told.each { |each| assert_equal 503, answer(HttpClient::Connection.new(each)).status }
    # Who sends all of it finds room, however large it is: others have waited for longer.
    5.times { |number| hub.publish(BOOK, number.to_s.ljust(100_000 * (number + 1), "x")) }
    slow.each(&:close)
    assert_well hub
  end

  test "without a descriptor for another connection it waits, and does not spin; with one it goes on" do
    prlimit, = skip_unless_available("prlimit")
    hub = start_native
    stream = follow(hub, BOOK)
    connection = connect(hub)
    connection.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_equal 200, answer(connection).status
    assert system(prlimit, "--pid", hub.pid.to_s, "--nofile=#{hub.descriptors.size + 3}:")
    waiting = Array.new(20) { socket(hub) }
    waiting.each { |each| each.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n") }
    connection.write(publication("topic=#{BOOK}&data=full", token: hub.publisher))
    assert_equal 200, answer(connection).status
    assert_equal "full", stream.next.data
    assert_operator waiting.count { |each| each.wait_readable(0) }, :<, 20, "there is room for all"
    before = hub.cpu
    sleep 1
    assert_operator hub.cpu - before, :<, 0.5, "it spins"
    assert system(prlimit, "--pid", hub.pid.to_s, "--nofile=1024:")
    waiting.each { |each| assert_equal 200, answer(HttpClient::Connection.new(each)).status }
    assert_well hub
  end

  test "connections that come and end within the last descriptors are all answered, one after the other" do
    prlimit, = skip_unless_available("prlimit")
    hub = start_native
    hub.get("/healthz")
    assert system(prlimit, "--pid", hub.pid.to_s, "--nofile=#{hub.descriptors.size + 2}:")
    asking = Array.new(50) { socket(hub) }
    asking.each { |each| each.write("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") }
    asking.each { |each| assert_equal 200, answer(HttpClient::Connection.new(each)).status }
  end

  test "on a Unix socket it serves as elsewhere, and nobody has an address to be counted by" do
    Dir.mktmpdir do |folder|
      path = "#{folder}/hub.sock"
      keys = SECRETS.flat_map { |role, secret| ["--#{role}-key", secret] }
      env = Sanitizers.wanted? ? Sanitizers.environment : {}
      process = run_client(*Integration::HIKYAKU, "serve", "--engine", "c", "--listen", "unix:#{path}", "--anonymous", "--max-connections-per-address", "1",
        "--issuer", ISSUER, "--resource-identifier", HUB_URL, *keys, env: env)
      client = HttpClient.new(unix: path)
      eventually("the socket") { File.socket?(path) && answers?(client) }
      streams = Array.new(3) { ending(client.stream("GET", "#{PATH}?match=#{BOOK}")) }
      2.times do |number|
        response = client.request("POST", PATH, headers: {"authorization" => "Bearer #{token(:publisher, "*")}", "content-type" => "application/x-www-form-urlencoded"},
          body: "topic=#{BOOK}&data=#{number}")
        assert_equal 200, response.status, response.body
      end
      streams.each { |stream| assert_equal %w[0 1], stream.take(2).map(&:data) }
      process.signal("TERM")
      assert_equal 0, process.status.exitstatus, process.errors
      streams.each { |stream| assert_empty stream.rest }
      refute File.exist?(path), "its socket is left behind"
      assert_empty Sanitizers.reports(process.errors)
    end
  end

  test "it listens on IPv6 and on IPv4; one client has one address however it comes (::ffff:…)" do
    skip "there is no IPv6 here" unless Socket.ip_address_list.any?(&:ipv6_loopback?)
    hub = start_native("--max-connections-per-address", "1", host: "")
    four, six = HttpClient.new(hub.port), HttpClient.new(hub.port, host: "::1")
    streams = [four, six].map { |client| client.stream("GET", "#{PATH}?match=#{BOOK}").tap { |stream| assert_equal 200, stream.status } }
    [four, six].each { |client| assert_refused 429, client.stream("GET", "#{PATH}?match=#{BOOK}"), retry_after: true }
    hub.publish(BOOK, "both")
    streams.each { |stream| assert_equal "both", ending(stream).next.data }
  end

  private

  def write_if_open(socket, bytes)
    socket.write(bytes)
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil # it was refused already
  end

  def answers?(client)
    client.request("GET", "/healthz").status == 200
  rescue SystemCallError
    false
  end
end
