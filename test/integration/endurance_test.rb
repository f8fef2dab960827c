# frozen_string_literal: true

require "support/integration"
require "support/fleet"
require "support/hub_server"
require "socket"

# Readers that are slow, that do not read, that vanish: they cost the hub nothing that stays, and nobody else anything.
class EnduranceTest < Integration::Test
  include AccessTokens

  BOOK = Integration::BOOK
  MIB = 1024 * 1024

  test "a reader that stands still holds up nobody, and has everything when it goes on" do
    hub = start_hub
    curl, = skip_unless_available("curl")
    still, other = Array.new(2) { run_client(curl, "-sSN", "--max-time", "60", subscription(hub, BOOK)).tap { |client| client.until(/^:/) } }
    still.signal("STOP")
    numbers = publish_much(hub, 200, 50_000)
    other.until { numbers_in(_1).last == numbers.last }
    assert_operator numbers_in(still.output).size, :<, numbers.size
    still.signal("CONT")
    still.until { numbers_in(_1).last == numbers.last }
    [still, other].each { |client| assert_equal numbers, numbers_in(client.output) }
  end

  test "a reader that the history passes is told of the gap, and goes on; the hub's memory stays" do
    hub = start_hub("--history", "1M")
    curl, = skip_unless_available("curl")
    readers = Array.new(20) { run_client(curl, "-sSN", "--max-time", "60", subscription(hub, BOOK)).tap { |client| client.until(/^:/) } }
    publish_much(hub, 300, 50_000)
    before = memory(hub)
    readers.each { |reader| reader.signal("STOP") }
    publish_much(hub, 600, 50_000) # 30 MB for each, 600 in all, of which the history has one
    # Ruby's garbage comes and goes; on a busy machine it was 38.
    assert_operator memory(hub) - before, :<, 60 * MIB
    readers.each { |reader| reader.signal("CONT") }
    hub.publish([["topic", BOOK], ["data", "end"]])
    readers.each do |reader|
      reader.until(/^data: end$/)
      gap = JSON.parse(reader.output[/^event: mercure\n(?:id: .*\n)?data: (.*)$/, 1])
      assert_equal %w[gap overrun], gap.values_at("type", "reason")
    end
  end

  test "a reader that never reads is closed after the write timeout, the others are not" do
    hub = start_hub("--write-timeout", "1", "--heartbeat", "1")
    lazy = Array.new(3) { connect(hub) }
    stream = follow(hub, BOOK)
    eventually("all of them") { subscribers(hub) == 4 }
    reader = Thread.new { stream.until("end") }
    publish_much(hub, 200, 50_000)
    eventually("the end of those who do not read") { subscribers(hub) == 1 }
    hub.publish([["topic", BOOK], ["data", "end"]])
    assert_equal 200, reader.value.size
    lazy.each(&:close)
  end

  test "a thousand subscribers come and vanish, again and again: descriptors and memory come back" do
    hub = start_hub("--max-connections-per-address", "2000")
    skip "2,000 sockets do not fit into the limit of open files: ulimit -n" unless Fleet.allow(2_500)
    come_and_vanish(hub, 1, abruptly: false) # what the first one starts, stays
    eventually("the end of the first stream") { subscribers(hub) == 0 }
    descriptors = descriptors_of(hub)
    sizes = Array.new(4) do |round|
      come_and_vanish(hub, 1_000, abruptly: round.odd?)
      eventually("the end of all streams") { subscribers(hub) == 0 }
      eventually("the end of all descriptors") { descriptors_of(hub) <= descriptors + 3 }
      memory(hub)
    end
    assert_operator sizes.last - sizes[1], :<, 15 * MIB, "it grows: #{sizes.map { |size| size / MIB }} MiB"
  end

  test "a client that vanishes without a word, its cable pulled, is closed within write timeout and heartbeat" do
    unshare, ip, nsenter, curl = skip_unless_available("unshare", "ip", "nsenter", "curl")
    return not_here("only root may make a network of its own") unless Process.uid.zero?
    hub = start_strict_hub("--write-timeout", "2", "--heartbeat", "1", "--subscriptions", "--resource-identifier", HUB_URL, host: "")
    network = run_client(unshare, "-n", "sleep", "60")
    return not_here("no network can be made") unless network_apart?(network)
    near, far = "hk#{Process.pid % 100_000}a", "hk#{Process.pid % 100_000}b"
    inside = [nsenter, "-t", network.pid.to_s, "-n"]
    make_cable(ip, inside, near, far, network.pid) || (return not_here("no virtual network can be made"))
    client = run_client(*inside, curl, "-sSN", "--max-time", "60", "http://10.213.7.1:#{hub.port}/.well-known/mercure?match=#{BOOK}")
    client.until(/^:/)
    watcher = token(:subscriber, "*")
    assert_equal 1, subscribers(hub, watcher)
    assert system(*inside, ip, "link", "set", far, "down")
    eventually("the end of the stream", 12) { subscribers(hub, watcher) == 0 }
  ensure
    system(ip, "link", "del", near, err: File::NULL) if near
  end

  test "the kernel is told the write timeout, where it can be" do
    server = ending(HubServer.new(write_timeout: 7))
    ending(server.client.stream("GET", "#{server.path}?match=#{BOOK}")).comments_until(1)
    eventually("the kernel's knowledge") { told_of(server).include?(7_000) }
  end

  private

  # @return [Array<Integer>] milliseconds
  def told_of(server) = accepted_by(server).map { |socket| socket.getsockopt(Socket::IPPROTO_TCP, Socket::TCP_USER_TIMEOUT).int }

  # The sockets of this process that a server has, whoever holds them: the engine in C shows Ruby none.
  def accepted_by(server)
    Dir.children("/proc/self/fd").filter_map do |descriptor|
      next unless File.readlink("/proc/self/fd/#{descriptor}").start_with?("socket:")
      socket = Socket.for_fd(descriptor.to_i).tap { |found| found.autoclose = false }
      socket if socket.local_address.ip? && socket.local_address.ip_port == server.port && socket.remote_address
    rescue SystemCallError
      nil # it is gone, or listens
    end
  end

  # What takes rights that a test may lack; the test above looks at how it is done.
  def not_here(reason)
    warn "\nNOT TESTED here, #{reason}: #{name}"
  end

  def network_apart?(process)
    deadline = HttpClient.now + 60
    while HttpClient.now < deadline
      return true if File.readlink("/proc/#{process.pid}/ns/net") != File.readlink("/proc/self/ns/net")
      sleep 0.02
    end
    false
  rescue SystemCallError
    false
  end

  # @return [Array<Integer>] the numbers with which the data begin
  def publish_much(hub, count, size)
    @publisher ||= hub.token(publish: ["*"])
    @next ||= 0
    Array.new(count) do
      hub.publish([["topic", BOOK], ["data", "#{@next += 1} #{"x" * size}"]], token: @publisher)
      @next
    end
  end

  def numbers_in(output) = output.scan(/^data: (\d+) /).flatten.map(&:to_i)

  # @return [Integer] subscribers, by the hub's own API
  def subscribers(hub, token = @watcher ||= hub.token(subscribe: ["*"]))
    response = HttpClient.new(hub.port).request("GET", "/.well-known/mercure/subscriptions", headers: {"authorization" => "Bearer #{token}"})
    assert_equal 200, response.status, response.body
    response.json["subscriptions"].size
  end

  # @return [TCPSocket] of a subscriber that reads nothing
  def connect(hub)
    ending(TCPSocket.new("127.0.0.1", hub.port).tap { |socket| socket.write(request) })
  end

  def request = "GET /.well-known/mercure?match=#{BOOK} HTTP/1.1\r\nHost: a\r\n\r\n"

  def come_and_vanish(hub, count, abruptly:)
    fleet = Fleet.new(hub.port, request)
    fleet.open(count)
    hub.publish([["topic", BOOK], ["data", "x" * 1_000]])
    fleet.members.each { |member| member.socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii")) } if abruptly
  ensure
    fleet&.close
  end

  def descriptors_of(hub) = Dir.children("/proc/#{hub.pid}/fd").size

  # @return [Integer] bytes
  def memory(hub) = File.read("/proc/#{hub.pid}/status")[/^VmRSS:\s+(\d+)/, 1].to_i * 1024

  def make_cable(ip, inside, near, far, pid)
    [
      [ip, "link", "add", near, "type", "veth", "peer", "name", far, "netns", pid.to_s],
      [ip, "addr", "add", "10.213.7.1/30", "dev", near], [ip, "link", "set", near, "up"],
      [*inside, ip, "addr", "add", "10.213.7.2/30", "dev", far], [*inside, ip, "link", "set", far, "up"]
    ].all? { |command| system(*command, err: File::NULL) }
  end
end
