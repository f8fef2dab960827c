# frozen_string_literal: true

require "socket"

# Clients that send a few bytes at a time, for tests that have `@port`, and close what is in `@sockets`.
module Drippers
  HEAD_IN_DRIPS = "GET /#{"x" * 2_000} HTTP/1.1\r\n"
  # Seconds from one drip to the next, and that are waited for an end.
  EVERY = 0.1
  PATIENCE = 180

  # One of them, with the thread that sends.
  Dripper = Struct.new(:socket, :thread)

  # @param count [Integer]
  # @param before [String] sent at once
  # @param bytes [String] sent in drips
  # @return [Array<Dripper>]
  def drip(count, before = "", bytes = HEAD_IN_DRIPS, every: EVERY, by: 1)
    Array.new(count) do
      socket = connect(before)
      Dripper.new(socket, Thread.new { drip_on(socket, bytes, every: every, by: by) })
    end
  end

  # Ends when all is sent, or something has come. A drip that is late makes no other late.
  def drip_on(socket, bytes, every: EVERY, by: 1)
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    bytes.chars.each_slice(by).with_index(1) do |part, count|
      break if socket.wait_readable(0)
      socket.write(part.join)
      sleep [began + count * every - Process.clock_gettime(Process::CLOCK_MONOTONIC), 0].max
    end
  rescue IOError, SystemCallError
    nil # it was cut
  end

  # @return [TCPSocket]
  def connect(bytes = "")
    socket = TCPSocket.new("127.0.0.1", @port)
    socket.setsockopt(:TCP, :NODELAY, true)
    @sockets << socket
    socket.write(bytes)
    socket
  end

  # @return [String] what has come when something has
  def read_answer(socket, seconds = PATIENCE)
    assert socket.wait_readable(seconds), "no answer"
    socket.readpartial(65_536)
  end

  def assert_ended(socket, name, seconds = PATIENCE)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    loop do
      left = deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC)
      assert left > 0 && socket.wait_readable(left), "#{name} is not ended"
      socket.readpartial(65_536)
    end
  rescue EOFError, Errno::ECONNRESET
    pass
  end
end
