# frozen_string_literal: true

require "test_helper"
require "hikyaku/broker/wire"
require "support/protocol_vectors"

class WireTest < Minitest::Test
  Wire = Hikyaku::Broker::Wire
  Vectors = ProtocolVectors

  def read(bytes, from:, by: bytes.bytesize, max_frame: 1024 * 1024)
    reader = Wire::Reader.new(from: from, max_frame: max_frame)
    frames = []
    0.step(bytes.bytesize - 1, by) { |at| reader.read(bytes.byteslice(at, by)) { |frame, size| frames << [frame, size] } }
    frames
  end

  %w[client broker].each do |side|
    test "frames of the #{side} are built as the vectors say, and read back field by field" do
      Vectors.of(side).each do |vector|
        assert_equal vector[:hex], Vectors.build(vector).unpack1("H*"), vector[:name]
        bytes = Vectors.bytes(vector)
        frame, size = read(bytes, from: side.to_sym).first
        assert_equal bytes.bytesize, size
        assert_predicate frame, :frozen?
        expected = vector.except(:name, :frame, :hex)
        assert_equal expected, Vectors.fields_of(frame), vector[:name]
        wire_name = {"WELCOME" => :ACK, "RECEIPT" => :ACK, "FORGET" => :DRAIN}.fetch(vector[:frame], vector[:frame].to_sym)
        assert_equal wire_name, Wire::Frames.name_of(frame)
      end
    end

    test "there is a vector for every type of frame of the #{side}" do
      types = (side == "client") ? Wire::Type::OF_CLIENT : Wire::Type::OF_BROKER
      assert_equal types, Vectors.of(side).map { |vector| Vectors.bytes(vector).getbyte(4) }.uniq.sort
    end

    test "however the bytes of the #{side} are cut, the frames are the same" do
      bytes = Vectors.of(side).map { |vector| Vectors.bytes(vector) }.join
      whole = read(bytes, from: side.to_sym)
      assert_equal Vectors.of(side).size, whole.size
      [1, 2, 3, 7, 15, 16, 17, 100].each { |by| assert_equal whole, read(bytes, from: side.to_sym, by: by), "#{by} bytes at a time" }
    end
  end

  test "what is malformed is refused with its code and its id, at any cut, and after the frames before it" do
    Vectors.of("malformed").each do |vector|
      good = Wire.ping(id: 77)
      [1, 5, 100_000].each do |by|
        reader = Wire::Reader.new(from: vector[:from].to_sym, max_frame: vector[:max_frame])
        frames = []
        violation = assert_raises(Wire::ProtocolError, vector[:name]) do
          (good + Vectors.bytes(vector)).scan(/.{1,#{by}}/mn) { |part| reader.read(part) { |frame, _| frames << frame } }
        end
        assert_equal [vector[:code], vector[:id]], [violation.code, violation.id], vector[:name]
        assert_match(/\A[^\n]{10,}\z/, violation.message)
        assert_equal [77], frames.map(&:id)
        reader.read(good) { flunk "it goes on reading" }
        assert_equal 0, reader.kept
      end
    end
  end

  test "no more than the frame that is not whole is kept, and nothing is made for a length that is only said" do
    reader = Wire::Reader.new(from: :client, max_frame: 4096)
    frame = Wire.send_message(to: "q", payload: "x" * 3000)
    ids = []
    500.times do |id|
      reader.read(frame + frame.byteslice(0, 50)) { ids << id }
      assert_equal 50, reader.kept
      reader.read(frame.byteslice(50, 5000)) { ids << id }
    end
    assert_equal 1000, ids.size
    assert_equal 0, reader.kept
    reader.read([4096, 2, 0, 0, 0].pack("VCCvQ<")) { flunk }
    assert_equal 16, reader.kept
  end

  test "what was given is not changed, and what was read does not change with it" do
    bytes = Wire.send_message(to: "queue", payload: "payload")
    before = bytes.dup
    reader = Wire::Reader.new(from: :client)
    frame = nil
    reader.read(bytes.byteslice(0, 20).freeze) { flunk }
    rest = bytes.byteslice(20, 100)
    reader.read(rest) { |each, _| frame = each }
    rest.replace("y" * 100)
    assert_equal before, bytes
    assert_equal %w[queue payload], [frame.destination, frame.payload]
  end

  test "a reader can be stopped in the middle of what it was given" do
    reader = Wire::Reader.new(from: :client)
    seen = []
    reader.read(Wire.ping(id: 1) + Wire.ping(id: 2) + Wire.ping(id: 3)) do |frame, _|
      seen << frame.id
      reader.stop if frame.id == 2
    end
    assert_equal [1, 2], seen
  end

  test "text in any encoding becomes bytes" do
    frame = read(Wire.send_message(to: "bücher", payload: "ä".encode("ISO-8859-1"), properties: Wire::Properties.pack({"wort" => "é"})), from: :client).first.first
    assert_equal ["bücher".b, "\xE4".b], [frame.destination, frame.payload]
    assert_equal({"wort" => "é".b}, Wire::Properties.parse(frame.properties))
  end

  test "values that do not fit their fields are not built" do
    [
      -> { Wire.send_message(to: "q", payload: "", id: 1 << 64) },
      -> { Wire.send_message(to: "q", payload: "", delay: -1) },
      -> { Wire.send_message(to: "q", payload: "", time_to_live: 1 << 32) },
      -> { Wire.send_message(to: "q", payload: "", priority: 256) },
      -> { Wire.send_message(to: "q" * 65_536, payload: "") },
      -> { Wire.send_message(to: "q", payload: "", properties: "x" * 65_536) },
      -> { Wire.send_message(to: "q", payload: "", delay: 1.5) },
      -> { Wire.send_batch(to: "q", messages: [["", ""]] * 65_536) },
      -> { Wire.hello(identity: "i" * 256) },
      -> { Wire.hello(credentials: "c" * 16_385) },
      -> { Wire.subscribe(subscription: 65_536, name: "q") },
      -> { Wire.free(first: 1, level: 3) },
      -> { Wire.nack(delivery: nil) },
      -> { Wire.push(id: 1, subscription: 1, message: 1, payload: "", sent_at: 0, lease: 1 << 32) }
    ].each_with_index { |building, index| assert_match(/whole number from 0 to/, assert_raises(ArgumentError, index.to_s, &building).message) }
  end

  test "properties are pairs, and what is none is found" do
    pairs = {"reply-to" => "web-1", "empty" => "", "n" * 255 => "v" * 65_000}
    assert_equal pairs, Wire::Properties.parse(Wire::Properties.pack(pairs))
    assert_equal({}, Wire::Properties.parse(""))
    ["\0", "\0\0\0", "\1", "\1a", "\1a\0", "\1a\1\0", "\1a\0\0x", "\5abc\0\0", "\1a\xFF\xFFxx"].each do |bytes|
      refute Wire::Properties.well_formed?(bytes.b), bytes.inspect
      assert_raises(ArgumentError) { Wire::Properties.parse(bytes.b) }
    end
    assert Wire::Properties.well_formed?("\1a\0\0payload".b, 4)
    refute Wire::Properties.well_formed?("\1a\1\0payload".b, 4)
    assert_raises(ArgumentError) { Wire::Properties.pack("" => "x") }
    assert_raises(ArgumentError) { Wire::Properties.pack("n" * 256 => "x") }
    assert_raises(ArgumentError) { Wire::Properties.pack("n" => "x" * 65_536) }
  end

  test "codes say whether the same may succeed later, as the document's table does" do
    rows = File.read(File.expand_path("../../docs/protocol.md", __dir__)).scan(/^\| (\d+) \| ([A-Z_]+) \| (yes|no) \|/)
    assert_equal rows.to_h { |number, name, _| [number.to_i, name.to_sym] }, Wire::Code::NAMES
    assert_equal rows.map { |_, _, later| later == "yes" }, rows.map { |number, _, _| Wire::Code.later?(number.to_i) }
  end

  test "credentials are in no inspect" do
    frame = read(Wire.hello(credentials: "geheim", identity: "web"), from: :client).first.first
    refute_match(/geheim/, "#{frame.inspect} #{frame}")
  end
end
