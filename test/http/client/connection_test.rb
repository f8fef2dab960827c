# frozen_string_literal: true

require "test_helper"
require "socket"
require "stringio"
require "timeout"
require "hikyaku/http/client"
require "support/misbehaving"

# One connection; and bodies that are slow in coming, which nobody else is to wait for.
class HTTPClientConnectionTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
  private_constant :Client, :ANSWER

  # Takes anything.
  class Nobody
    attr_reader :told

    def initialize = @told = []

    def method_missing(name, *about) = @told << [name, *about]

    def respond_to_missing?(*) = true
  end
  private_constant :Nobody

  # A connection that stands.
  class Standing
    def initialize(socket) = @socket = socket

    def step(_now) = @socket

    def round_trip = nil

    def close = nil
  end
  private_constant :Standing

  def setup
    @near, @far = UNIXSocket.pair
    @owner = Nobody.new
    route = Client::Route.to(Hikyaku::HTTP::Address.parse("http://a.example/").origin, proxy: nil)
    @connection = Client::Connection.new(route, Client::Settings.new(proxy: nil), owner: @owner, wake: -> {}, now: 0.0)
    @connection.instance_variable_set(:@opening, Standing.new(@near))
    @connection.step(0.0)
  end

  def teardown = [@near, @far].each(&:close)

  test "what comes is confirmed at once while more is under way, but not on a long way, nor what is the last" do
    skip "only Linux can" unless Socket.const_defined?(:TCP_QUICKACK)
    quick = [Socket::IPPROTO_TCP, Socket::TCP_QUICKACK, 1]
    {nil => [quick], 0.001 => [quick], 0.2 => []}.each do |round_trip, told|
      setup
      said = []
      @near.define_singleton_method(:setsockopt) { |*about| said << about }
      @connection.ask([exchange, exchange], 0.0, round_trip: round_trip)
      2.times do |i|
        @far.write(ANSWER)
        @connection.step(1.0)
        assert_equal [told, 1 - i], [said, @connection.unanswered.size], round_trip.inspect
      end
      teardown
    end
    setup
  end

  test "what has come is read, though nothing can be written any more" do
    [ANSWER, ""].each do |said|
      setup
      asked = exchange
      @connection.ask([asked], 0.0)
      @far.write(said)
      @far.close
      @connection.step(1.0)
      @connection.step(1.0)
      assert_equal said.empty? ? [:broke] : [:received, :head, :answered], @owner.told.map(&:first).grep(/head|answered|broke|received/).first(3)
      assert_predicate @connection, :closed? if said.empty?
    end
    setup
  end

  test "nothing is read while it pauses" do
    asked = exchange
    @connection.ask([asked], 0.0)
    @connection.pause
    @far.write(ANSWER)
    @connection.step(1.0)
    assert_equal [[], [asked], nil], [@connection.reading, @connection.unanswered, @connection.deadline]
    @connection.resume
    assert_equal [@near], @connection.reading
    @connection.step(2.0)
    assert_empty @connection.unanswered
  end

  test "a body that is slow in coming is waited for beside the answer, and no time of the server's runs" do
    piped do |reader, writer|
      @connection.ask([exchange(body: reader)], 0.0)
      @connection.flush(0.0)
      assert_equal [[@near, reader], [], nil], [@connection.reading, @connection.writing, @connection.deadline]
      refute @connection.ready?({}) || @connection.pending?
      assert @connection.ready?({reader => true})
      writer << "late"
      writer.close
      @connection.step(1_000.0)
      assert_equal [@near], @connection.reading
      assert_in_delta 1_060.0, @connection.deadline
      assert @far.readpartial(1_000).end_with?("Transfer-Encoding: chunked\r\n\r\n4\r\nlate\r\n0\r\n\r\n")
      refute @connection.expire(1_059.0)
      assert @connection.expire(1_061.0)
    end
  end

  test "a piece that comes late has all its time to be taken" do
    piped do |reader, writer|
      @connection.ask([exchange(body: reader)], 0.0)
      @connection.flush(0.0)
      nil until @near.write_nonblock("x" * 1_000, exception: false) == :wait_writable
      writer << "late"
      @connection.step(1_000.0)
      assert_equal [@near], @connection.writing
      assert_in_delta 1_030.0, @connection.deadline
    end
  end

  test "a body that is not wanted any more, or was closed, is not waited for" do
    [->(asked, _) { asked.cancel! }, ->(_, _) { @far.write(ANSWER) && @connection.step(1.0) }].each do |change|
      piped do |reader, _writer|
        setup
        asked = exchange(body: reader)
        @connection.ask([asked], 0.0)
        @connection.flush(0.0)
        refute @connection.expire(1.0)
        change.call(asked, reader)
        assert @connection.expire(1.0)
        assert_equal [true, []], [@connection.closed?, @connection.reading]
      end
    end
    setup
    piped do |reader, _writer|
      @connection.ask([exchange(body: reader)], 0.0)
      @connection.flush(0.0)
      @connection.pause
      assert_equal [reader], @connection.reading
      @connection.resume
      reader.close
      assert @connection.pending? && @connection.ready?({})
      assert_equal [@near], @connection.reading
      @connection.step(1.0)
      assert_equal [:broke, :body], @owner.told.last.values_at(0, 2)
    end
  end

  test "who sends a body that does not come keeps nobody else, and only as long as its time allows" do
    Misbehaving.run(:well_behaved) do |server|
      client = Client.new(memory: nil, cache: false, proxy: nil)
      piped do |reader, writer|
        posting = Thread.new { client.post(server.url("/slow"), body: reader) }
        Thread.pass until server.log.any? || posting.status == "sleep"
        assert_equal 200, Timeout.timeout(60) { client.get(server.url("/other")).status }
        writer << "late"
        writer.close
        assert_equal "POST /slow\n", posting.value.body
      end
      piped do |reader, _writer|
        error = Timeout.timeout(60) { assert_raises(Hikyaku::HTTP::TimedOut) { client.post(server.url("/never"), body: reader, timeout: 0.1) } }
        assert_equal :total, error.phase
        assert_equal 200, client.get(server.url("/another")).status
      end
      assert_equal 1, client.instance_variable_get(:@manager).servers.to_a.first.connections.size
    ensure
      client&.close
    end
  end

  private

  # Where it is not read as it should be, nothing would ever come.
  def piped(&block) = Timeout.timeout(60) { IO.pipe(&block) }

  def exchange(body: nil)
    Client::Exchange.new(Hikyaku::HTTP::Request.new(body ? "POST" : "GET", "http://a.example/", body: body), Nobody.new, number: 1)
  end
end
