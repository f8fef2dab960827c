# frozen_string_literal: true

require "test_helper"
require "socket"
require "timeout"
require "hikyaku/http/client"

# Threads that are interrupted at any time, as by Timeout.timeout: who goes on has its own answers.
class HTTPClientInterruptionTest < Minitest::Test
  Stop = Class.new(Exception) # rubocop:disable Lint/InheritException -- as Timeout's own

  # While it is told of a cookie, somebody interrupts the thread that tells it.
  class Jar
    def initialize
      @asked = Queue.new
      @done = false
    end

    def cookies(_) = []

    def parse(*)
      @asked << true
      Thread.pass until @done
    end

    def interrupting
      @asked.pop
      yield
      @done = true
    end
  end
  private_constant :Stop, :Jar

  def setup = @held = Queue.new

  # The jar is asked in the midst of what is done with an answer: whoever drives does it, here for somebody else.
  test "a thread that is interrupted while it takes another's answer goes through with it first" do
    %i[raise kill].each do |how|
      jar = Jar.new
      client = Hikyaku::HTTP::Client.new(memory: nil, cache: false, proxy: nil, cookies: jar)
      serving do |url|
        wanted = client.fetch("#{url}/wanted")
        driver = Thread.new { client.get("#{url}/never") }
        driver.report_on_exception = false
        jar.interrupting { (how == :kill) ? driver.kill : driver.raise(Stop) }
        (how == :kill) ? assert_nil(driver.join(60).value) : assert_raises(Stop) { driver.join(60) }
        assert_equal "/wanted", Timeout.timeout(60) { wanted.value.body }
      end
    ensure
      client.close
    end
  end

  test "what a thread that was interrupted waited for is not wanted any more, and the next is answered" do
    client = Hikyaku::HTTP::Client.new(memory: nil, cache: false, proxy: nil)
    serving do |url|
      assert_raises(Timeout::Error) { Timeout.timeout(0.1) { client.get("#{url}/never") } }
      assert_raises(Timeout::Error) { Timeout.timeout(0.1) { client.get("#{url}/never?1", "#{url}/never?2") } }
      assert_empty client.instance_variable_get(:@manager).instance_variable_get(:@resources)
      assert_equal "/wanted", client.get("#{url}/wanted").body
    end
  ensure
    client.close
  end

  # Asleep for bytes, or for who drives; or awake, and without the lock yet.
  test "whoever is interrupted where it waits, the others are answered, and so is who comes next" do
    [true, false].product([true, false], %i[raise kill]).each do |drives, at_lock, how|
      client = Hikyaku::HTTP::Client.new(memory: nil, cache: false, proxy: nil)
      serving do |url|
        threads = waiting(client, *(drives ? ["#{url}/never", "#{url}/held"] : ["#{url}/held", "#{url}/never"]))
        interrupted, other = drives ? threads : threads.reverse
        interrupt = -> { (how == :kill) ? interrupted.kill : interrupted.raise(Stop) }
        at_lock ? holding(client, interrupted, drives, &interrupt) : interrupt.call
        (how == :kill) ? assert(interrupted.join(60)) : assert_raises(Stop) { interrupted.join(60) }
        @held << true
        assert_equal "/held", Timeout.timeout(60) { other.value }, [drives, at_lock, how].inspect
        assert_equal "/wanted", Timeout.timeout(60) { client.get("#{url}/wanted").body }
      end
    ensure
      client.close
    end
  end

  private

  # The first drives, the second waits for it.
  def waiting(client, *urls)
    driver = client.instance_variable_get(:@driver)
    urls.each_with_index.map do |url, index|
      thread = Thread.new { client.get(url).body }
      thread.report_on_exception = false
      Thread.pass until driver.instance_variable_get(:@waiting).size == index + 1 && driver.instance_variable_get(:@asleep) && thread.stop?
      thread
    end
  end

  # The thread is woken while another has the lock.
  def holding(client, thread, drives)
    driver = client.instance_variable_get(:@driver)
    driver.synchronize do
      drives ? driver.wake : driver.instance_variable_get(:@waiting).last.news.broadcast
      Thread.pass until !drives || thread.backtrace.first.end_with?("`lock'")
      yield
    end
  end

  def serving
    server = TCPServer.new("127.0.0.1", 0)
    threads = []
    threads << Thread.new { loop { threads << serve(server.accept) } }
    yield "http://127.0.0.1:#{server.local_address.ip_port}"
  ensure
    threads&.each(&:kill)
    server&.close
  end

  def serve(socket)
    Thread.new do
      while (line = socket.gets)
        path = line.split[1]
        nil until socket.gets == "\r\n"
        next if path.start_with?("/never")
        @held.pop if path.start_with?("/held")
        socket.write("HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: #{path.bytesize}\r\n\r\n#{path}")
      end
    rescue SystemCallError
      nil
    ensure
      socket.close
    end
  end
end
