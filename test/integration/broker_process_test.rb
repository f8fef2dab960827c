# frozen_string_literal: true

require "test_helper"
require "support/access_tokens"
require "support/broker_process_case"
require "support/without_native"
require "net/http"
require "tempfile"

# The broker's own process: how it begins, what it survives, and how it ends.
class BrokerProcessTest < Minitest::Test
  include BrokerProcessCase

  # @return [Array] code and message of a broker that does not start
  def refused(*flags, **options)
    error = assert_raises(BrokerProcess::NotStarted) { start(*flags, **options) }
    [error.status.exitstatus, error.message]
  end

  def client(broker, **options) = ending(broker.client(**options))

  # @return [Integer] how many messages it took until it said that the disk is full
  def fill_disk(broker)
    sender = broker.client
    sent = 0
    error = assert_raises(Client::Refused) { 2_000.times { send_patiently(sender, "orders", "#{sent} ".ljust(3_000, "x"), level: :synced).then { sent += 1 } } }
    assert_equal Wire::Code::DISK_FULL, error.code
    sent
  ensure
    sender&.close(timeout: 5)
  end

  # Its client goes afterwards: one that stayed would come back after a restart, and take what the next one waits for.
  #
  # @return [Array<String>] payloads of what waits in a queue, freed
  def all(broker, queue, count, seconds = 60)
    client = broker.client
    receiver = client.receiver(queue)
    Array.new(count) do
      delivery = receiver.receive(timeout: seconds) or flunk "a message is missing"
      delivery.ack(wait: true)
      delivery.payload
    end
  ensure
    client&.close(timeout: 5)
  end

  # @return [Hash] figures of a queue
  def figures(broker, queue) = client(broker).queues.find { |one| one["name"] == queue || one[:name] == queue }&.transform_keys(&:to_s)

  # Frames of the broker until the end of the connection, or so many.
  def frames(socket, count = nil, seconds = 60)
    reader = Wire::Reader.new(from: :broker)
    found = []
    deadline = now + seconds
    until count && found.size >= count
      flunk "no frame in time" unless socket.wait_readable([deadline - now, 0].max)
      # One frame too many would be lost: so many bytes that only what is wanted is there.
      bytes = socket.read_nonblock(count ? wanted(socket) : 65_536, exception: false)
      return found if bytes.nil?
      reader.read(bytes) { |frame,| found << frame } unless bytes == :wait_readable
    end
    found
  rescue Errno::ECONNRESET
    found
  end

  # @return [Integer] bytes of the next frame, or of as much of it as is there
  def wanted(socket) = [socket.recv_nonblock(4, Socket::MSG_PEEK, exception: false).then { |size| (size.is_a?(String) && size.bytesize == 4) ? size.unpack1("V") : 1 }, 1].max

  # A connection that has said HELLO.
  def greet(socket, **fields)
    socket.write(Wire.hello(**fields))
    frames(socket, 1).first
  end

  # A broker whose storage is a disk of its own.
  #
  # @param size [String] as mount has it
  def on_small_disk(size, *flags)
    skip "only root may mount a small disk" unless Process.uid.zero?
    Dir.mktmpdir do |folder|
      skip "no tmpfs can be mounted here" unless system("mount", "-t", "tmpfs", "-o", "size=#{size}", "tmpfs", folder, err: IO::NULL)
      begin
        yield broker = BrokerProcess.new(*flags, storage: "#{folder}/storage")
      ensure
        @closing.reverse_each(&:close)
        @closing.clear
        broker&.close
        system("umount", folder) || system("umount", "-l", folder)
      end
    end
  end

  # There is room, and what is sent now is there after a kill.
  def takes_again(broker, sender, **options)
    eventually("room") { sender.send_message("orders", "again", **options) rescue nil } # standard:disable Style/RescueModifier
    broker.kill.start
    assert_equal ["again"], all(broker, "orders", 1)
  end

  test "the engine in Ruby logs once that it has no extension for its checksums, and needs none without storage" do
    env = {"RUBYOPT" => [ENV["RUBYOPT"], WithoutNative::OPTION].join(" ")}
    broker = start("--engine", "ruby", env: env)
    assert_equal 1, broker.log.scan(/WARN .*checksums of its journal in Ruby.*\(no extension\).*install the gem again$/).size
    refute_match(/checksums/, start("--engine", "ruby", env: env, storage: false).log)
    refute_match(/checksums/, start("--engine", "ruby").log)
  end

  test "the socket is for its user alone, and is gone after the end" do
    broker = start
    assert_equal 0o600, File.stat(broker.socket).mode & 0o777
    assert_equal 0o700, File.stat("#{broker.storage}/broker").mode & 0o777
    eventually("its word") { broker.log.include?("broker is listening on unix:#{broker.socket}") }
    status = broker.stop
    assert_equal 0, status.exitstatus, broker.log
    refute File.exist?(broker.socket)
    assert_empty broker.complaints
  end

  %w[written synced].each do |level|
    test "what was acknowledged as #{level} is there after kill -9, in order, and what was freed is not" do
      broker = start
      sender = client(broker)
      20.times { |number| assert_equal level.to_sym, sender.send_message("orders", "m#{number}", level: level.to_sym).level }
      assert_equal %w[m0 m1 m2 m3 m4], all(broker, "orders", 5)
      broker.kill.start
      assert_equal Array.new(15) { |number| "m#{number + 5}" }, all(broker, "orders", 15)
    end
  end

  test "what was acknowledged at level memory is gone after kill -9, and there after an orderly end" do
    broker = start
    client(broker).send_message("orders", "kept", level: :written)
    client(broker).send_message("orders", "memory", level: :memory)
    broker.kill.start
    assert_equal 1, figures(broker, "orders")["ready"]
    client(broker).send_message("orders", "memory", level: :memory)
    broker.stop
    broker.start
    assert_equal %w[kept memory], all(broker, "orders", 2)
  end

  test "without storage it says so, and refuses what memory cannot promise" do
    broker = start(storage: false)
    eventually("its word") { broker.log.include?("level memory is the only one") }
    sender = client(broker)
    assert_equal :memory, sender.send_message("orders", "x").level
    error = assert_raises(Client::Refused) { sender.send_message("orders", "x", level: :synced) }
    assert_equal Wire::Code::LEVEL, error.code
  end

  test "a broker that is stopped for a while goes on where it was" do
    broker = start
    sender = client(broker)
    sender.send_message("orders", "before")
    broker.pause
    waiting = Thread.new { sender.send_message("orders", "during") }
    refute waiting.join(0.5)
    broker.go_on
    assert waiting.join(60)
    assert_equal %w[before during], all(broker, "orders", 2)
  end

  test "a stop waits until a receiver has finished what it has, and takes nothing meanwhile" do
    broker = start("--drain", "600")
    socket = ending(broker.connect)
    greet(socket)
    socket.write(Wire.send_message(id: 2, to: "orders", payload: "work") + Wire.subscribe(id: 3, subscription: 1, name: "orders", credit: 1))
    push = frames(socket, 3).find { |frame| frame.is_a?(Wire::Frames::Push) }
    broker.signal("TERM")
    assert_instance_of Wire::Frames::Draining, frames(socket, 1).first
    socket.write(Wire.send_message(id: 4, to: "orders", payload: "late"))
    assert_equal Wire::Code::DRAINING, frames(socket, 1).first.code
    assert_raises(Errno::ENOENT, Errno::ECONNREFUSED) { broker.connect }
    socket.write(Wire.free(id: 5, first: push.id))
    assert_equal 0, broker.wait.exitstatus, broker.log
    broker.start
    assert_nil figures(broker, "orders")&.fetch("ready")&.nonzero?
  end

  test "a stop does not wait for ever, and what was out comes back" do
    broker = start("--drain", "0.3")
    socket = ending(broker.connect)
    greet(socket)
    socket.write(Wire.send_message(id: 2, to: "orders", payload: "work", level: 1) + Wire.subscribe(id: 3, subscription: 1, name: "orders", credit: 1))
    frames(socket, 3)
    assert_equal 0, broker.stop.exitstatus, broker.log
    broker.start
    assert_equal ["work"], all(broker, "orders", 1)
  end

  test "a second signal ends it at once" do
    broker = start("--drain", "600")
    socket = ending(broker.connect)
    greet(socket)
    socket.write(Wire.send_message(id: 2, to: "orders", payload: "work") + Wire.subscribe(id: 3, subscription: 1, name: "orders", credit: 1))
    frames(socket, 3)
    broker.signal("TERM")
    eventually("the word of the stop") { broker.log.include?("stopping on TERM") }
    broker.signal("TERM")
    assert_equal 1, broker.wait.exitstatus
  end

  test "two processes do not share one storage, nor one socket" do
    broker = start
    code, message = refused(storage: broker.storage)
    assert_equal 1, code
    assert_equal 1, message.lines.size, message
    assert_match(/\Ahikyaku: .*(?:another process|locked|in use)/, message)
    code, message = refused("--socket", broker.socket)
    assert_equal 1, code
    assert_match(/\Ahikyaku: cannot listen on unix:.*: another process listens there; stop it or choose another with --socket$/, message)
    assert_equal :written, client(broker).send_message("orders", "still here").level
  end

  test "a socket file that a killed broker has left is no obstacle" do
    broker = start.kill
    assert File.socket?(broker.socket)
    broker.start
    assert client(broker)
  end

  test "a damaged storage is not opened: it is said where, and what to do" do
    broker = start
    sender = client(broker)
    20.times { |number| sender.send_message("orders", "m#{number}" * 100, level: :synced) }
    broker.kill
    segment = Dir["#{broker.storage}/broker/journal-*.seg"].max
    bytes = File.binread(segment)
    at = bytes.index("m5m5m5")
    File.open(segment, "r+b") { |file| file.pwrite("X", at) }
    error = assert_raises(BrokerProcess::NotStarted) { broker.start }
    assert_equal 1, error.status.exitstatus
    message = error.message.lines.last
    assert_match(/\Ahikyaku: #{File.basename(segment)} is damaged at offset \d+/, message)
    assert_includes message, "hikyaku log check #{broker.storage}/broker"
    assert_includes message, "hikyaku log salvage #{broker.storage}/broker"
  end

  test "a storage that fails ends the process with code 1 and a word, and what was acknowledged is there" do
    prlimit, = skip_unless_available("prlimit")
    broker = start(within: ["sh", "-c", 'trap "" XFSZ; exec "$@"', "sh"])
    sender = client(broker, open_timeout: 1, timeout: 1)
    acknowledged = Array.new(20) { |number| sender.send_message("orders", "m#{number}", level: :written) && "m#{number}" }
    assert system(prlimit, "--pid", broker.pid.to_s, "--fsize=1024")
    error = assert_raises(Client::Failure) { sender.send_message("orders", "in doubt", level: :written) }
    refute_kind_of Client::Overloaded, error
    assert_equal 1, broker.wait.exitstatus, broker.log
    assert_match(/ERROR .*the broker has failed and accepts nothing more: .*journal-\d+\.seg/, broker.log)
    broker.start
    assert_equal acknowledged, all(broker, "orders", 20)
  end

  test "storage that cannot be written is refused with the reason" do
    code, message = refused(storage: "/proc/nowhere")
    assert_equal 1, code
    assert_match(%r{\Ahikyaku: cannot keep messages in /proc/nowhere/broker: }, message)
  end

  test "bytes that are no frames end their connection alone, with the reason" do
    broker = start
    good = client(broker)
    [Random.bytes(4_000), "GET / HTTP/1.1\r\n\r\n", "\xff" * 64, "\0" * 64, Wire.hello[0, 20], Wire.ping(id: 1)].each do |garbage|
      socket = ending(broker.connect)
      socket.write(garbage)
      socket.close_write
      errors = frames(socket)
      assert_operator errors.size, :<=, 1
      assert_includes [Wire::Code::MALFORMED, Wire::Code::UNEXPECTED, Wire::Code::TOO_BIG], errors.first.code if errors.any?
    end
    assert good.send_message("orders", "still here")
    assert_empty broker.complaints
  end

  test "thousands of connections that say nothing more cost the others nothing" do
    count = [2_000, Process.getrlimit(:NOFILE).first - 200].min
    broker = start
    idle = Array.new(count) { ending(broker.connect).tap { |socket| socket.write(Wire.hello) } }
    idle.each { |socket| assert_kind_of Wire::Frames::Welcome, frames(socket, 1).first }
    sender = client(broker)
    100.times { |number| sender.send_message("orders", number.to_s) }
    assert_equal Array.new(100, &:to_s), all(broker, "orders", 100)
    idle.each(&:close)
    eventually("their end") { client(broker).sessions.size < 10 }
  end

  test "one client too many is told so" do
    broker = start("--max-connections", "2")
    2.times { greet(ending(broker.connect)) }
    error = frames(ending(broker.connect)).first
    assert_equal [Wire::Code::LIMIT, 2, 1000], [error.code, error.scope, error.retry_after]
  end

  test "a receiver that reads nothing harms only itself, and is closed after a while" do
    broker = start("--write-timeout", "1")
    slow = ending(broker.connect)
    greet(slow)
    slow.write(Wire.subscribe(id: 2, subscription: 1, name: "orders", credit: 10_000))
    frames(slow, 1)
    sender = client(broker)
    50.times { |number| send_patiently(sender, "orders", "#{number} ".ljust(100_000, "x")) }
    sender.send_message("others", "hello")
    assert_equal ["hello"], all(broker, "others", 1)
    eventually("the end of the slow one") { figures(broker, "orders")["out"].zero? }
    assert_equal [*0...50], all(broker, "orders", 50).map(&:to_i).sort
  end

  test "a sender that sends more than it may is refused what is too much, and gets an answer to everything" do
    broker = start("--max-unanswered", "10")
    socket = ending(broker.connect)
    greet(socket)
    sending = Thread.new { 500.times { |number| socket.write(Wire.send_message(id: number + 2, to: "orders", payload: "x" * 1_000)) } }
    taken = refused = 0
    while taken + refused < 500
      answer = frames(socket, 1).first
      next taken += answer.last ? answer.last - answer.id + 1 : 1 if answer.is_a?(Wire::Frames::Ack)
      assert_equal Wire::Code::OVERLOADED, answer.code
      refused += 1
    end
    sending.join
    assert_equal taken, figures(broker, "orders")["ready"]
    assert_operator taken, :>=, 10
  end

  test "a full disk refuses messages, and takes what makes room" do
    on_small_disk("8m") do |broker|
      sender = client(broker)
      sent = 0
      error = assert_raises(Client::Refused) { 2_000.times { send_patiently(sender, "orders", "#{sent} ".ljust(10_000, "x")).then { sent += 1 } } }
      assert_equal Wire::Code::DISK_FULL, error.code
      assert error.retryable?
      assert_operator sent, :>, 100
      assert_equal [*0...sent], all(broker, "orders", sent).map(&:to_i)
      takes_again(broker, sender)
    end
  end

  test "on a full disk it starts as often as it is killed or stopped, with everything, and takes messages when there is room" do
    on_small_disk("3000k", "--segment-bytes", "262144") do |broker|
      sent = fill_disk(broker)
      freed = 0
      %w[KILL KILL TERM TERM KILL KILL].each do |signal|
        broker.stop(signal)
        broker.start
        assert_equal [*freed...(freed + 2)], all(broker, "orders", 2).map(&:to_i), signal
        freed += 2
        assert_equal 0, fill_disk(broker), "it takes none while there is no room"
      end
      assert_equal [*freed...sent], all(broker, "orders", sent - freed).map(&:to_i)
      sender = client(broker)
      takes_again(broker, sender, level: :synced)
    end
  end

  test "over TCP a secret is asked for, and its log never holds it" do
    Tempfile.create("secret") do |file|
      file.write("a secret of many bytes")
      file.close
      broker = start("--listen", "127.0.0.1:0", "--secret-file", file.path)
      address = "tcp://127.0.0.1:#{broker.port}"
      good = ending(Client.open(address, secret: "a secret of many bytes"))
      assert good.send_message("orders", "x")
      [{secret: "another secret of bytes"}, {}, {token: "a.b.c"}].each do |credentials|
        error = assert_raises(Client::Refused, credentials.inspect) { Client.open(address, **credentials) }
        assert_equal Wire::Code::UNAUTHORIZED, error.code
      end
      refute_includes broker.log, "secret of"
    end
  end

  test "a token permits what it says, to whom it says, until it ends" do
    keys = AccessTokens::SECRETS.fetch(:publisher)
    broker = start("--publisher-key", keys, "--issuer", AccessTokens::ISSUER, "--resource-identifier", AccessTokens::HUB_URL)
    rights = {"send" => ["orders", "mail"], "receive" => ["mail"]}
    token = AccessTokens.token(:publisher, "*", hikyaku: rights, exp: Time.now.to_i + 60)
    bearer = client(broker, token: token, identity: "user-1")
    assert bearer.send_message("orders", "x")
    assert bearer.send_message("mail", "y")
    assert_equal "y", bearer.receiver("mail").receive(timeout: 60).payload
    [-> { bearer.send_message("others", "x") }, -> { bearer.receiver("orders") }, -> { bearer.purge("orders") }].each do |forbidden|
      assert_equal Wire::Code::FORBIDDEN, assert_raises(Client::Refused, &forbidden).code
    end
    assert_raises(Client::Refused) { Client.open("unix:#{broker.socket}", token: token, identity: "user-2") }

    socket = ending(broker.connect)
    brief = AccessTokens.token(:publisher, "*", hikyaku: rights, exp: Time.now.to_i + 5)
    assert_kind_of Wire::Frames::Welcome, greet(socket, authentication: 2, credentials: brief, identity: "user-1", epoch: 2**62)
    error = frames(socket).last
    assert_equal [Wire::Code::UNAUTHORIZED, 2], [error.code, error.scope]
    refute_includes broker.log, brief[-20..]
    assert_empty broker.complaints
  end

  test "beyond this machine it listens only if it asks who one is" do
    code, message = refused("--listen", "0.0.0.0:0")
    assert_equal 2, code
    assert_match(/\Ahikyaku: --listen: .*give --secret-file, or whose tokens are good/, message)
  end

  test "its figures are shown over HTTP" do
    broker = start("--metrics", "127.0.0.1:0")
    client(broker).send_message("orders \"new\"", "x", level: :synced)
    url = URI(eventually("the address of the figures") { broker.log[%r{Figures: (http://\S+)}, 1] })
    text = Net::HTTP.get(url)
    assert_match(/^hikyaku_broker_queue_messages\{queue="orders \\"new\\"",kind="queue",state="ready"\} 1$/, text)
    assert_match(/^hikyaku_broker_received_total\{level="synced"\} 1$/, text)
    assert_match(/^hikyaku_broker_sync_seconds_count [1-9]/, text)
    assert_equal "ok\n", Net::HTTP.get(URI.join(url, "/healthz"))
    assert_equal "404", Net::HTTP.get_response(URI.join(url, "/other")).code
  end

  test "serve --broker is a hub and a broker in one process, with one page of figures" do
    broker = serve("--metrics")
    client(broker).send_message("orders", "x", level: :written)
    url = eventually("the hub's address") { broker.log[%r{is listening on (http://\S+?),}, 1] }
    metrics = Net::HTTP.get(URI.join(url, "/metrics"))
    assert_match(/^hikyaku_subscribers 0$/, metrics)
    assert_match(/^hikyaku_broker_messages 1$/, metrics)
    assert_includes broker.log, "its broker on unix:#{broker.socket}"
    assert_equal 0, broker.stop.exitstatus, broker.log
    assert_empty broker.complaints
    broker.start
    assert_equal ["x"], all(broker, "orders", 1)
  end

  test "serve --broker does not start on a storage that another process has" do
    broker = start
    error = assert_raises(BrokerProcess::NotStarted) { serve(storage: broker.storage) }
    assert_equal 1, error.status.exitstatus
    assert_match(/^hikyaku: .*(?:another process|locked|in use)/, error.message)
  end
end
