# frozen_string_literal: true

require "support/native_test"

# Clients that take their time with the server of the engine in C: each is given up when its time is over, and no other notices.
class Integration::NativeTimeoutsTest < Integration::NativeTest
  parallelize_me!

  BOOK = Integration::BOOK
  # Seconds by which each of them is over, however busy the machine is: the idle timeout is 20.
  PATIENCE = 180
  HEALTH = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
  private_constant :BOOK, :PATIENCE, :HEALTH

  test "slow heads, slow bodies, idle connections, and readers that do not read are given up in time; all else goes on" do
    @hub = start_native("--write-timeout", "1", "--heartbeat", "1")
    stream = follow(@hub, BOOK)
    slow = cases.map { |name, play| [name, Thread.new { play.call }] }
    told = publish_all_the_while { slow.any? { |_, thread| thread.alive? } }
    slow.each { |name, thread| assert thread.value, name }
    assert_equal told, stream.take(told.size).map(&:data)
    metrics = @hub.metrics
    assert_equal 6, metrics.fetch(%(refusals_total{reason="slow_request"}))
    assert_equal 1, metrics.fetch(%(timeouts_total{awaited="idle"}))
    assert_equal 1, metrics.fetch("subscribers")
  end

  private

  # Each is played on a thread of its own, and true when what had to come of it came.
  def cases
    {
      "nothing at all is closed without a word" => -> { ended_silently?(begin_with) },
      "half a head is told 408" => -> { told_late?(begin_with("GET / HT")) },
      "a head that dribbles is told 408, however steadily" => -> { told_late?(dribble("GET /#{"x" * 300} HTTP/1.1\r\n")) },
      "half a second head is told 408" => -> { told_late?(healthy.tap { |socket| socket.write("GET / ") }) },
      "a body that stops is told 408" => -> { told_late?(begin_with(body_of(100)[..-50])) },
      "a body that dribbles is told 408, however steadily" => -> { told_late?(dribble(*halves(body_of(60)), every: 0.5)) },
      "a body that is slow, and keeps its pace, is a body" => -> { answered?(stream(*halves(body_of(12_000)), rate: 1_000)) },
      "a connection without another request is closed without a word" => -> { ended_silently?(healthy) },
      "a stream that is not read is ended" => -> { ended_unread?(subscription_to("#{BOOK}/large")) },
      "answers that are not read are ended" => -> { ended_unread?("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 4_000) }
    }
  end

  def begin_with(bytes = "") = socket(@hub).tap { |socket| socket.write(bytes) }

  def healthy
    begin_with(HEALTH).tap { |socket| raise "no answer" unless answer(HttpClient::Connection.new(socket)).status == 200 }
  end

  def body_of(size) = publication("topic=#{BOOK}/slow&data=".ljust(size, "x"), token: @hub.publisher)

  # @return [Array(String, String)] body and head
  def halves(request) = request.partition("\r\n\r\n").then { |head, mark, body| [body, head + mark] }

  def dribble(bytes, before = "", every: 0.1)
    begin_with(before).tap do |socket|
      bytes.each_char do |char|
        break if socket.wait_readable(0)
        socket.write(char)
        sleep every
      end
    end
  end

  # @param rate [Integer] bytes a second, also where the machine has no time for each piece in turn
  def stream(bytes, before, rate:)
    begin_with(before).tap do |socket|
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      sent = 0
      while sent < bytes.bytesize && !socket.wait_readable(0.05)
        due = [((Process.clock_gettime(Process::CLOCK_MONOTONIC) - began) * rate).ceil, bytes.bytesize].min
        socket.write(bytes.byteslice(sent...due))
        sent = due
      end
    end
  end

  def told_late?(socket)
    response = answer(HttpClient::Connection.new(socket), seconds: PATIENCE)
    assert_refused 408, response
    socket.read.to_s.empty?
  end

  # The connection is closed, lest it be idle for too long, too, where the others take long.
  def answered?(socket)
    answer(HttpClient::Connection.new(socket), seconds: PATIENCE).status == 200
  ensure
    socket.close
  end

  def ended_silently?(socket) = socket.wait_readable(PATIENCE) && socket.read.to_s.empty?

  # How much the kernels take before it stalls is theirs to know. An end that stands behind what is not read, is not seen.
  def ended_unread?(bytes)
    socket = begin_with
    socket.setsockopt(:SOCKET, :RCVBUF, 4_096)
    writer = Thread.new { write(socket, bytes) }
    eventually("the end of both that do not read", PATIENCE) { @hub.metrics.fetch(%(timeouts_total{awaited="write"})) == 2 }
    writer.kill
    read_up(socket)
  end

  def write(socket, bytes)
    socket.write(bytes)
  rescue SystemCallError
    nil
  end

  # A kernel that gave a client up (TCP_USER_TIMEOUT) says so when it hears from it again.
  def read_up(socket)
    PATIENCE.times do
      socket.write(" ") unless socket.wait_readable(1)
      nil while socket.wait_readable(0)&.readpartial(65_536)
    end
    false
  rescue EOFError, Errno::ECONNRESET, Errno::EPIPE
    true
  end

  # What everybody else does in the meantime.
  def publish_all_the_while
    large = "x" * 50_000
    (0..).each_with_object([]) do |number, told|
      return told unless yield
      @hub.publish(BOOK, number.to_s)
      told << number.to_s
      @hub.publish("#{BOOK}/large", large)
      raise "it does not end" if number > 10 * PATIENCE
      sleep 0.1
    end
  end
end
