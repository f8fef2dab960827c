# frozen_string_literal: true

require "test_helper"
require "stringio"
require "timeout"
require "hikyaku/http/client/request_writer"

class HTTPClientRequestWriterTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  private_constant :Client

  # A socket that takes so many bytes.
  class Narrow
    attr_reader :taken
    attr_accessor :room

    def initialize(room)
      @room = room
      @taken = "".b
    end

    def write_nonblock(bytes, exception:)
      raise "it would raise" if exception
      return :wait_writable if @room.zero?
      count = [bytes.bytesize, @room].min
      @room -= count
      @taken << bytes.byteslice(0, count)
      count
    end
  end

  # The same with TLS, which wants the bytes again that it did not take.
  class Sealed < Narrow
    def pending = 0

    def write_nonblock(bytes, exception:)
      raise "a bad write retry" if @refused && !bytes.start_with?(@refused.byteslice(0, 16_384))
      super.tap { |count| @refused = count.is_a?(Symbol) ? bytes.dup : nil }
    end
  end

  def setup = @outgoing = Client::RequestWriter.new

  test "all is written in its order, however little is taken at a time" do
    requests = requests_of(400, 1_000, 40, 5_000)
    [->(all) { @outgoing.add(all) }, ->(all) { @outgoing.add_in_pieces(all) }].each do |add|
      setup
      narrow = Narrow.new(0)
      assert_equal [400, 1_400, 1_440, 6_440], add.call(requests.map(&:dup))
      assert_equal [6_500, 6_520], @outgoing.add(["y" * 60, "z" * 20])
      refute @outgoing.write(narrow)
      until @outgoing.empty?
        narrow.room = 7
        assert @outgoing.write(narrow)
      end
      assert_equal requests.join + "y" * 60 + "z" * 20, narrow.taken
    end
  end

  # Sizes of requests, and of the pieces.
  PIECES = {
    [50] * 3 => [150], [50] * 4 => [175, 25], [50, 60, 70, 80, 90] => [220, 130], [50] * 10 => [175, 300, 25], [50] * 30 => [175, 300, 600, 425],
    [50] * 100 => [175, 300, 600, 1_200, 2_725], [1] => [1], [1] * 4 => [3, 1]
  }.freeze
  private_constant :PIECES

  test "for a long way it is written in pieces that grow, and each but the last ends within a request" do
    PIECES.each do |sizes, pieces|
      setup
      @outgoing.add_in_pieces(requests_of(*sizes))
      assert_equal pieces, written_pieces, sizes.inspect
    end
  end

  test "where more is to come half of the last is kept, and written with what comes" do
    %i[add add_in_pieces].each do |add|
      setup
      more = (add == :add) ? [60] : [50] * 3
      assert_equal more.sum, @outgoing.public_send(add, requests_of(*more), unfinished: true).last
      pieces = written_pieces
      assert_equal more.sum - more.last / 2, pieces.sum
      assert_predicate @outgoing, :empty?
      assert_predicate @outgoing, :unfinished?
      assert_equal [more.sum + 50], @outgoing.add(requests_of(50), unfinished: true)
      assert_equal [more.last / 2 + 25], written_pieces
      @outgoing.finish
      refute_predicate @outgoing, :unfinished?
      assert_equal [25], written_pieces
      @outgoing.finish
      assert_empty written_pieces
    end
  end

  test "a request that is unfinished is finished where it is the last that is written, and forgotten with all" do
    requests = requests_of(40, 60)
    {40 => 70, 100 => 100}.each do |place, written|
      setup
      @outgoing.add(requests.map(&:dup), unfinished: true)
      narrow = Narrow.new(1_000)
      @outgoing.write(narrow)
      assert_equal 70, narrow.taken.bytesize
      @outgoing.cut(place)
      @outgoing.write(narrow)
      assert_equal requests.join[0, written], narrow.taken
      refute_predicate @outgoing, :unfinished?
    end
    @outgoing.add(["a" * 10], unfinished: true)
    @outgoing.clear
    @outgoing.finish
    assert_empty @outgoing
  end

  test "what is in pieces already up to the half of its last request is not followed by an empty piece" do
    @outgoing.add_in_pieces(requests_of(*[50] * 4), unfinished: true)
    assert_equal [175], written_pieces
    assert_predicate @outgoing, :empty?
    @outgoing.finish
    assert_equal [25], written_pieces
  end

  test "what comes after a place is not written any more, whatever was written already" do
    requests = requests_of(400, 1_000, 40, 5_000)
    [false, true].product([0, 1, 399, 400, 401, 1_399, 1_400, 2_000], [400, 1_400]) do |pieces, taken, place|
      setup
      pieces ? @outgoing.add_in_pieces(requests.map(&:dup)) : @outgoing.add(requests.map(&:dup))
      narrow = Narrow.new(taken)
      @outgoing.write(narrow)
      @outgoing.cut(place)
      narrow.room = 100_000
      @outgoing.write(narrow)
      assert_equal requests.join[0, [taken, place].max], narrow.taken, [pieces, taken, place].inspect
      assert_empty @outgoing
    end
  end

  test "TLS is given what it was given, and no more than a record of it" do
    requests = requests_of(400, 30_000, 40)
    {0 => 16_384, 100 => 16_484, 30_420 => 30_440}.each do |taken, written|
      setup
      @outgoing.add(requests.map(&:dup))
      sealed = Sealed.new(taken)
      @outgoing.write(sealed)
      @outgoing.cut(400)
      sealed.room = 100_000
      @outgoing.write(sealed)
      assert_equal written, sealed.taken.bytesize
    end
  end

  test "a body is read as it goes, and what it raises is told as its failure" do
    pieces = ["abc", "de", nil]
    body = Object.new
    body.define_singleton_method(:read) { |_| pieces.shift }
    @outgoing.add(["head"])
    @outgoing.read_from(upload(body))
    narrow = Narrow.new(100)
    assert_predicate @outgoing, :reading?
    @outgoing.write(narrow)
    assert_equal "head3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", narrow.taken
    refute_predicate @outgoing, :reading?
    assert_equal [narrow.taken.bytesize + 4], @outgoing.add(["next"])
    body.define_singleton_method(:read) { |_| raise IOError, "gone" }
    @outgoing.read_from(upload(body))
    error = assert_raises(Hikyaku::HTTP::BodyFailed) { @outgoing.write(narrow) }
    assert_equal ["http://a.example/", IOError], [error.url, error.cause.class]
    refute_predicate @outgoing, :reading?
  end

  test "a body from a pipe is read as far as it has come, and waited for" do
    piped do |reader, writer|
      @outgoing.add(["head"])
      @outgoing.read_from(upload(reader))
      narrow = Narrow.new(100_000)
      assert_nil @outgoing.awaited
      assert @outgoing.write(narrow)
      assert_equal ["head", true, true, reader], [narrow.taken, @outgoing.empty?, @outgoing.reading?, @outgoing.awaited]
      refute @outgoing.write(narrow)
      writer << "abc"
      assert @outgoing.write(narrow)
      assert_equal ["head3\r\nabc\r\n", reader], [narrow.taken, @outgoing.awaited]
      writer << "de"
      writer.close
      @outgoing.write(narrow)
      assert_equal ["head3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", nil, false], [narrow.taken, @outgoing.awaited, @outgoing.reading?]
    end
  end

  test "a pipe that is closed by who gave it is told as its failure, and is waited for no more" do
    piped do |reader, _writer|
      @outgoing.read_from(upload(reader))
      narrow = Narrow.new(100)
      @outgoing.write(narrow)
      reader.close
      assert_match(/closed stream/, assert_raises(Hikyaku::HTTP::BodyFailed) { @outgoing.write(narrow) }.message)
      assert_equal [nil, false], [@outgoing.awaited, @outgoing.reading?]
    end
  end

  test "files, and what cannot be waited for, are read" do
    odd = Class.new(StringIO) { def to_io = raise("no") }
    [File.open(__FILE__), StringIO.new(File.binread(__FILE__)), odd.new(File.binread(__FILE__)), Struct.new(:all) { def read(_) = all.shift }.new([File.binread(__FILE__)])].each do |body|
      setup
      body.define_singleton_method(:read_nonblock) { |*| raise "it was to be read" }
      @outgoing.read_from(upload(body))
      narrow = Narrow.new(1_000_000)
      @outgoing.write(narrow)
      assert_nil @outgoing.awaited
      assert_equal File.binread(__FILE__), narrow.taken[/\A\h+\r\n(.*)\r\n0\r\n\r\n\z/mn, 1]
    ensure
      body.close if body.is_a?(File)
    end
  end

  # What gives it, how much is announced; what is written, and what is said of it.
  LENGTHS = [
    [%w[abc de], 5, "abcde", nil], [%w[abcde], 5, "abcde", nil], [[], 0, "", nil], [%w[abc], 5, "abc", /ended after 3 of the 5 bytes/], [[], 5, "", /ended after 0 of the 5 bytes/],
    [%w[abc def], 5, "abc", /has more than the 5 bytes/], [%w[abcde f], 5, "", /has more than the 5 bytes/], [%w[abcdef], 5, "", /has more than the 5 bytes/]
  ].freeze
  private_constant :LENGTHS

  test "as many bytes as were announced are written, and never a whole request where a body has more or fewer" do
    LENGTHS.each do |pieces, length, written, complaint|
      all = pieces.dup
      body = Object.new
      body.define_singleton_method(:read) { |_| all.shift }
      assert_counted(body, length, "head#{written}", complaint)
    end
  end

  test "the same holds for a pipe, of which nobody knows whether it has ended" do
    LENGTHS.each do |pieces, length, _, complaint|
      [true, false].each do |closed|
        next if !closed && complaint&.source&.include?("ended")
        piped do |reader, writer|
          writer << pieces.join
          writer.close if closed
          assert_counted(reader, length, (complaint.nil? || pieces.join.bytesize < length) ? "head#{pieces.join}" : "head", complaint)
        end
      end
    end
  end

  test "where nothing is announced and something is there, not even the head is written" do
    [StringIO.new("x"), File.open(__FILE__)].each do |body|
      setup
      assert_counted(body, 0, "", /has more than the 0 bytes/)
    ensure
      body.close
    end
  end

  private

  def upload(body, length = nil) = Client::RequestBody.new(body, "http://a.example/", length)

  def assert_counted(body, length, written, complaint)
    setup
    @outgoing.read_from(upload(body, length))
    @outgoing.add(["head"])
    narrow = Narrow.new(1_000)
    if complaint
      error = assert_raises(Hikyaku::HTTP::BodyFailed) { @outgoing.write(narrow) }
      assert_match complaint, error.message
      assert_equal "http://a.example/", error.url
    else
      @outgoing.write(narrow)
    end
    assert_equal [written, false, nil], [narrow.taken, @outgoing.reading?, @outgoing.awaited], [body, length].inspect
  end

  # Where it is not read as it should be, nothing would ever come.
  def piped(&block) = Timeout.timeout(60) { IO.pipe(&block) }

  # @return [Array<Integer>] how much each write is given
  def written_pieces
    written = []
    taker = Object.new
    taker.define_singleton_method(:write_nonblock) { |bytes, exception:| exception ? raise : (written << bytes.bytesize).last }
    @outgoing.write(taker)
    written
  end

  def requests_of(*sizes) = sizes.each_with_index.map { |size, index| ((97 + index % 26).chr * size).b }
end
