# frozen_string_literal: true

require "support/fleet"
require "support/native_test"

# As many subscribers as a process may have files open, nearly.
class Integration::NativeManySubscribersTest < Integration::NativeTest
  EVERYBODY = "https://example.com/everybody"
  SUBSCRIBERS = 19_000
  # Files that this process, and the hub's, have open beside subscribers' sockets.
  OTHER_FILES = 256
  KIB = 1024

  test "19,000 subscribers in one process are served and counted; those beyond --max-connections are refused politely, and it goes on" do
    count = affordable
    hub = start_native("--max-connections", count.to_s, "--heartbeat", "0")
    fleet = ending(Fleet.new(hub.port, subscription_to(EVERYBODY)))
    fleet.open(100)
    before = hub.memory
    fleet.open(count - 100, seconds: 120)
    report_memory(hub.memory - before, count - 100)
    assert_equal count, hub.metrics["subscribers"]
    5.times { assert_refused 429, hub.subscribe({match: EVERYBODY}), retry_after: true }
    deliver(hub, fleet, "one")
    fleet.leave(100)
    eventually("the end of some") { hub.metrics["subscribers"] == count - 100 }
    fleet.open(100)
    deliver(hub, fleet, "two")
    assert_equal [count.to_f, 5.0], hub.metrics.values_at("subscribers", %(refusals_total{reason="too_many_in_total"}))
    assert fleet.members.none?(&:ended?)
    leave_abruptly(fleet)
    eventually("the end of all", 30) { hub.metrics["subscribers"].zero? }
    assert_operator hub.descriptors.size, :<, 100
  end

  private

  # @return [Integer] subscribers that the limit of open files allows, in this process and in the hub's
  def affordable
    return SUBSCRIBERS if Fleet.allow(SUBSCRIBERS + OTHER_FILES)
    limit = Process.getrlimit(:NOFILE).last
    Process.setrlimit(:NOFILE, limit, limit)
    warn "\nNOT #{SUBSCRIBERS}, but #{limit - OTHER_FILES} subscribers, because only #{limit} files may be open: ulimit -n"
    limit - OTHER_FILES
  end

  def report_memory(bytes, count)
    each = bytes / count
    puts "\n#{count} idle subscribers: #{each} bytes each (growth of the resident memory)"
    assert_operator each, :<, 4 * KIB unless Sanitizers.wanted?
  end

  def deliver(hub, fleet, data)
    hub.publish(EVERYBODY, data)
    line = "data: #{data}\n"
    fleet.pump(HttpClient.now + 60, "the update #{data}") { fleet.members.all? { |member| member.bytes.end_with?("#{line}\n") } }
    assert_equal({1 => fleet.members.size}, fleet.members.map { |member| member.count(line) }.tally)
  end

  # So that thousands of ports are free again at once.
  def leave_abruptly(fleet)
    fleet.members.each { |member| member.socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii")) }
    fleet.close
  end
end
