# frozen_string_literal: true

require "test_helper"
require "brotli"
require "zstd-ruby"
require "hikyaku/http/content_coding"

class ContentCodingTest < Minitest::Test
  ContentCoding = Hikyaku::HTTP::ContentCoding
  TEXT = Array.new(60) { |i| "line #{i * 7919 % 101} of what is said\n" }.join.b.freeze
  GZIP = Zlib.gzip(TEXT).b.freeze
  DEFLATE = Zlib.deflate(TEXT).b.freeze
  # The most that a step of 512 bytes of deflate can become, and somewhat more.
  PIECE = 550_000
  private_constant :ContentCoding, :TEXT, :GZIP, :DEFLATE, :PIECE

  # A stage that counts what comes out of another.
  class Counting
    attr_reader :bytes, :largest

    def initialize(stage)
      @stage = stage
      @bytes = @largest = 0
    end

    def step(bytes)
      @stage.step(bytes).tap do |piece, _|
        @bytes += piece.bytesize
        @largest = [@largest, piece.bytesize].max
      end
    end

    def complete? = @stage.complete?

    def mislabelled? = false
  end

  # A stage that makes a megabyte of each byte.
  class Flood
    MEGABYTE = ("x" * 1_048_576).freeze

    def step(bytes) = [MEGABYTE, (bytes[1..] if bytes.bytesize > 1)]

    def complete? = true

    def mislabelled? = false
  end

  # A stage that gives nothing.
  class Drain
    def step(_bytes) = ["", nil]

    def complete? = true

    def mislabelled? = false
  end

  # What the gem brotli does, as far as it is used: takes all that it is given, and gives it back reversed when it has seen its last byte, "!".
  class ReversingBrotli
    def initialize
      @taken = "".b
      @given = @finished = false
    end

    def process(bytes, output_buffer_limit:)
      raise "cannot accept more data until pending output is drained" unless bytes.empty? || can_accept_more_data
      raise "it is broken" if bytes.include?("?")
      @taken << bytes
      return "" unless @given || @taken.end_with?("!")
      @given = true
      out = @taken.slice!(-[output_buffer_limit, @taken.bytesize].min..)
      @finished = @taken.empty?
      out.reverse
    end

    def can_accept_more_data = !@given

    def finished? = @finished
  end

  # What the gem zstd-ruby does, as far as it is used: the answers are given.
  class ScriptedZstd
    attr_reader :asked

    def initialize(*answers)
      @answers = answers
      @asked = []
    end

    def decompress_with_pos(bytes)
      @asked << bytes.dup
      out, taken = @answers.shift || raise("it is broken")
      [out, taken || bytes.bytesize]
    end
  end

  test "gzip is always offered, deflate never" do
    assert_equal "gzip", ContentCoding.accepted[0, 4]
    assert_empty ContentCoding.accepted.split(", ") - %w[gzip br zstd]
    assert_predicate ContentCoding.accepted, :frozen?
  end

  # Codings as the field has them, and the bytes.
  CODED = {
    ["gzip"] => GZIP,
    ["x-gzip"] => GZIP,
    ["GZip"] => GZIP,
    [" gzip\t", "identity", ""] => GZIP,
    ["deflate"] => DEFLATE,
    ["deflate", "gzip"] => Zlib.gzip(DEFLATE),
    ["gzip", "deflate"] => Zlib.deflate(GZIP),
    ["gzip", "x-gzip"] => Zlib.gzip(GZIP),
    ["gzip", "gzip", "gzip"] => Zlib.gzip(Zlib.gzip(GZIP))
  }.freeze
  private_constant :CODED

  test "what was encoded is decoded, the last coding first, whole or in pieces of any size" do
    CODED.each do |codings, bytes|
      [bytes.bytesize, 1, 2, 3, 7, 100].each { |step| assert_equal TEXT, decode(codings, bytes, step: step), "#{codings}, #{step} at a time" }
    end
  end

  test "deflate is understood with its wrapping and without, whatever its level" do
    [0, 1, 6, 9].each do |level|
      bare = Zlib::Deflate.new(level, -Zlib::MAX_WBITS).deflate(TEXT, Zlib::FINISH)
      [bare, Zlib.deflate(TEXT, level)].each do |bytes|
        [bytes.bytesize, 1].each { |step| assert_equal TEXT, decode(["deflate"], bytes, step: step), "level #{level}" }
      end
    end
  end

  test "what a server flushes is decoded at once" do
    {"gzip" => 16 + Zlib::MAX_WBITS, "deflate" => Zlib::MAX_WBITS}.each do |coding, bits|
      encoder = Zlib::Deflate.new(6, bits)
      decoder = ContentCoding.decoder([coding], max_bytes: nil)
      %w[one two three].each { |event| assert_equal event, decoder << encoder.deflate(event, Zlib::SYNC_FLUSH), coding }
      assert_equal "", decoder << encoder.finish
      assert_equal "", decoder.finish
    end
  end

  test "what comes out is binary" do
    decoder = ContentCoding.decoder(["gzip"], max_bytes: nil)
    pieces = [decoder << Zlib.gzip("\u00E9").force_encoding(Encoding::UTF_8), decoder.finish]
    assert_equal [Encoding::BINARY], pieces.map(&:encoding).uniq
    assert_equal "\u00E9".b, pieces.join
  end

  test "where there is nothing to undo there is no decoder" do
    [[], ["identity"], ["Identity", " identity "], [""], ["", "identity"]].each { |codings| assert_nil ContentCoding.decoder(codings, max_bytes: 1), codings.inspect }
  end

  UNKNOWN = ["compress", "x-compress", "gzip;q=1", "gzip, gzip", "g zip", "gz\0ip", "*", "none", "utf-8", "GZIP2", "x-br", "\xFF", "a" * 100_000].freeze
  private_constant :UNKNOWN

  test "a coding that is not known is refused, with a short message" do
    UNKNOWN.each do |coding|
      error = assert_raises(ContentCoding::Unsupported, coding[0, 20].inspect) { ContentCoding.decoder(["gzip", coding], max_bytes: nil) }
      assert_kind_of Hikyaku::Error, error
      assert_operator error.message.bytesize, :<, 300
      assert_predicate error.message, :valid_encoding?
    end
  end

  test "codings are known by their names, whether a gem is there or not" do
    [[], [""], ["identity"], ["gzip"], [" X-GZIP ", "br"], %w[deflate zstd identity]].each { |codings| assert ContentCoding.known?(codings), codings.inspect }
    [["none"], ["utf-8"], ["gzip", "aws-chunked"], ["compress"], ["gzip;q=1"], ["\xFF"]].each { |codings| refute ContentCoding.known?(codings), codings.inspect }
  end

  test "a coding whose gem is not there is refused, and the gem named" do
    {"br" => "brotli", "zstd" => "zstd-ruby"}.each do |coding, gem|
      next if ContentCoding.accepted.split(", ").include?(coding)
      assert_includes assert_raises(ContentCoding::Unsupported) { ContentCoding.decoder([coding], max_bytes: nil) }.message, "the gem #{gem}"
    end
  end

  test "more than three codings are refused, identity not counted" do
    assert_raises(ContentCoding::Unsupported) { ContentCoding.decoder(["gzip"] * 4, max_bytes: nil) }
    assert_raises(ContentCoding::Unsupported) { ContentCoding.decoder(["gzip"] * 100_000, max_bytes: nil) }
    refute_nil ContentCoding.decoder(["gzip"] * 3 + ["identity"] * 3, max_bytes: nil)
  end

  test "a body of no bytes needs no coding" do
    %w[gzip deflate].each do |coding|
      assert_equal "", ContentCoding.decoder([coding], max_bytes: 0).finish
      assert_equal "", decode([coding, "gzip"], Zlib.gzip(""))
      assert_equal "", decode([coding], "")
    end
  end

  test "members of gzip one after the other are one body, wherever they are cut" do
    three = Zlib.gzip("one, ") + Zlib.gzip("") + Zlib.gzip("two")
    assert_equal "one, two", decode(["gzip"], three)
    (1...three.bytesize).each { |cut| assert_equal "one, two", decode_parts(["gzip"], three.byteslice(0, cut), three.byteslice(cut..)), "cut after #{cut}" }
    assert_equal "one, two", decode(["gzip"], three, step: 1)
    assert_equal TEXT * 500, decode(["gzip"], GZIP * 500)
  end

  TRAILING = ["\0", "\0" * 5_000, "garbage", "\x1F", "\x1F\x8A", "\x8B\x1F", "\r\n", "<!-- served by a server -->" * 200].map(&:b).freeze
  private_constant :TRAILING

  test "what follows the end is passed over" do
    TRAILING.each do |garbage|
      {"gzip" => GZIP, "deflate" => DEFLATE}.each do |coding, bytes|
        [100_000, 1, 3].each { |step| assert_equal TEXT, decode([coding], bytes + garbage, step: step, max_bytes: TEXT.bytesize), "#{coding}, then #{garbage[0, 20].inspect}" }
      end
    end
  end

  test "what follows garbage is garbage, even if it looks like gzip" do
    assert_equal TEXT, decode(["gzip"], "#{GZIP}\0#{GZIP}".b)
  end

  PLAIN = ["<html>", "{}", " ", "x", "\0", "\x8B\x1F", "\x1Fx", "\x1F\x1F\x8B", "PK\x03\x04", TEXT, TEXT * 1_000].map(&:b).freeze
  private_constant :PLAIN

  test "what is labelled gzip and is none is left as it is, and this is told" do
    PLAIN.each do |plain|
      [plain.bytesize, 1, 1_000].each do |step|
        decoder = ContentCoding.decoder(["gzip"], max_bytes: nil)
        assert_equal plain, feed(decoder, plain, step), plain[0, 20].inspect
        assert_predicate decoder, :mislabelled?
        break if plain.bytesize > 10_000
      end
    end
  end

  test "what is gzip is not called mislabelled, nor what ends before it can be known" do
    decoder = ContentCoding.decoder(["gzip"], max_bytes: nil)
    refute_predicate decoder, :mislabelled?
    decoder << "\x1F".b
    refute_predicate decoder, :mislabelled?
    assert_raises(ContentCoding::Corrupt) { decoder.finish }
    decoder = ContentCoding.decoder(["gzip"], max_bytes: nil)
    feed(decoder, GZIP, 10)
    refute_predicate decoder, :mislabelled?
  end

  test "what is labelled twice and was encoded once is decoded once" do
    decoder = ContentCoding.decoder(["gzip", "gzip"], max_bytes: nil)
    assert_equal TEXT, feed(decoder, GZIP, 5)
    assert_predicate decoder, :mislabelled?
  end

  test "what ends too early is corrupt, wherever it is cut off" do
    {"gzip" => GZIP, "deflate" => DEFLATE}.each do |coding, bytes|
      (1...bytes.bytesize).each do |size|
        error = assert_raises(ContentCoding::Corrupt, "#{coding} after #{size}") { decode([coding], bytes.byteslice(0, size)) }
        assert_kind_of Hikyaku::Error, error
      end
    end
    bare = Zlib::Deflate.new(6, -Zlib::MAX_WBITS).deflate(TEXT, Zlib::FINISH)
    (1...bare.bytesize).each { |size| assert_raises(ContentCoding::Corrupt, "bare deflate after #{size}") { decode(["deflate"], bare.byteslice(0, size)) } }
    assert_raises(ContentCoding::Corrupt) { decode(["gzip"], GZIP + GZIP.chop) }
    assert_raises(ContentCoding::Corrupt) { decode(["gzip", "gzip"], Zlib.gzip(GZIP.chop)) }
  end

  # What is at which place of a member of gzip, in place of what was.
  BROKEN = {
    "another method" => [2, 7], "reserved flags" => [3, 0xE0], "the checksum" => [-8, nil], "the checksum's end" => [-5, nil], "the length" => [-4, nil],
    "the first block" => [10, 0x07]
  }.freeze
  private_constant :BROKEN

  test "gzip that is broken is corrupt" do
    BROKEN.each do |what, (place, byte)|
      bytes = GZIP.dup
      bytes.setbyte(place, byte || bytes.getbyte(place) ^ 0xFF)
      [bytes.bytesize, 1].each { |step| assert_raises(ContentCoding::Corrupt, what) { decode(["gzip"], bytes, step: step) } }
    end
  end

  test "deflate that is broken, or wants a dictionary that nobody has, is corrupt" do
    with_dictionary = Zlib::Deflate.new.tap { |encoder| encoder.set_dictionary("what is said") }.deflate(TEXT, Zlib::FINISH)
    [with_dictionary, "<html>", "\xFF" * 100, DEFLATE.chop + "?"].each do |bytes|
      assert_raises(ContentCoding::Corrupt, bytes[0, 10].inspect) { decode(["deflate"], bytes.b) }
    end
  end

  test "a decoder that has refused something refuses for ever" do
    [["\x1F\x8B\x07\x00".b, nil, ContentCoding::Corrupt], [GZIP, 10, ContentCoding::TooLarge]].each do |bytes, max_bytes, refusal|
      decoder = ContentCoding.decoder(["gzip"], max_bytes: max_bytes)
      errors = [-> { decoder << bytes }, -> { decoder << GZIP }, -> { decoder.finish }].map { |call| assert_raises(refusal, &call) }
      assert_equal 1, errors.uniq.size
    end
  end

  test "exactly as much as the limit is decoded, and not a byte more" do
    CODED.each do |codings, bytes|
      [bytes.bytesize, 1].each do |step|
        assert_equal TEXT, decode(codings, bytes, step: step, max_bytes: TEXT.bytesize) unless codings.size > 1
        error = assert_raises(ContentCoding::TooLarge, codings.inspect) { decode(codings, bytes, step: step, max_bytes: TEXT.bytesize - 1) }
        assert_kind_of Hikyaku::Error, error
        assert_includes error.message, (TEXT.bytesize - 1).to_s
      end
    end
    assert_raises(ContentCoding::TooLarge) { decode(["gzip"], "not gzip", max_bytes: 7) }
    assert_raises(ContentCoding::TooLarge) { decode(["gzip"], Zlib.gzip("x"), max_bytes: 0) }
  end

  test "a bomb is refused before more than one step of it is decoded, in whichever pieces it comes" do
    zeros = "\0" * 20_000_000
    bare = Zlib::Deflate.new(9, -Zlib::MAX_WBITS).deflate(zeros, Zlib::FINISH)
    bombs = [["gzip", Zlib.gzip(zeros)], ["gzip", Zlib.gzip("") * 50 + Zlib.gzip(zeros)], ["deflate", Zlib.deflate(zeros, 9)], ["deflate", bare]]
    bombs.each do |coding, bomb|
      [bomb.bytesize, 4_000].each do |step|
        counting = Counting.new((coding == "gzip") ? ContentCoding::Gzip.new : ContentCoding::Deflate.new)
        assert_raises(ContentCoding::TooLarge) { feed(ContentCoding::Decoder.new([counting], max_bytes: 1_000), bomb, step) }
        assert_operator counting.bytes, :<=, 1_000 + PIECE
        assert_operator counting.largest, :<=, PIECE
      end
    end
  end

  test "a bomb in a bomb is refused as early" do
    bomb = Zlib.gzip(Zlib.gzip("\0" * 20_000_000))
    inner = Counting.new(ContentCoding::Gzip.new)
    assert_raises(ContentCoding::TooLarge) { ContentCoding::Decoder.new([ContentCoding::Gzip.new, inner], max_bytes: 100_000) << bomb }
    assert_operator inner.bytes, :<=, 100_000 + PIECE
  end

  test "without a limit a body may be long, but a piece of it does not become without bounds, nor what lies between two codings" do
    most = ContentCoding::Decoder::MOST_AT_ONCE / Flood::MEGABYTE.bytesize
    decoder = ContentCoding::Decoder.new([Flood.new, Drain.new], max_bytes: nil)
    3.times { assert_equal "", decoder << "!" * most }
    assert_raises(ContentCoding::TooLarge) { decoder << "!" * (most + 1) }
  end

  test "what is fed is decoded as it is taken, in pieces of no more than a megabyte, whatever it becomes" do
    zeros = "\0" * 20_000_000
    {["gzip"] => Zlib.gzip(zeros), ["deflate"] => Zlib.deflate(zeros), %w[gzip gzip] => Zlib.gzip(Zlib.gzip(zeros)), ["br"] => Brotli.deflate(zeros),
     ["zstd"] => Zstd.compress(zeros), %w[br gzip] => Zlib.gzip(Brotli.deflate(zeros))}.each do |codings, bomb|
      decoder = ContentCoding.decoder(codings, max_bytes: nil)
      decoder.feed(bomb)
      sizes = []
      first = decoder.next
      decoder.feed(bomb.byteslice(0, 0))
      refute_match(/ #{zeros.bytesize}/, decoder.inspect)
      sizes << first.bytesize
      while (piece = decoder.next)
        sizes << piece.bytesize
      end
      assert_equal [zeros.bytesize, ""], [sizes.sum, decoder.finish], codings.inspect
      assert_operator sizes.max, :<=, 1_048_576, codings.inspect
      assert_operator sizes.count { |size| size < 65_536 }, :<=, 1, codings.inspect
    end
  end

  test "what is fed while something waits comes after it" do
    {"gzip" => GZIP, "br" => Brotli.deflate(TEXT), "zstd" => Zstd.compress(TEXT)}.each do |coding, bytes|
      decoder = ContentCoding.decoder([coding], max_bytes: nil)
      bytes.each_char { |byte| decoder.feed(byte) }
      assert_equal TEXT, decoder.next, coding
      assert_nil decoder.next
      assert_equal "", decoder.finish
    end
  end

  test "a large body passes through, in pieces as a connection brings them" do
    random = Random.new(7)
    body = Array.new(300) { random.bytes(3_000) + ("-" * 7_000) }.join
    {"gzip" => Zlib.gzip(body), "deflate" => Zlib.deflate(body)}.each { |coding, bytes| assert_equal body, decode([coding], bytes, step: 1_460), coding }
  end

  test "nothing of the body is shown by inspect" do
    decoder = ContentCoding.decoder(["gzip"], max_bytes: nil)
    decoder << GZIP
    refute_includes decoder.inspect, "line"
  end

  test "br is taken out in pieces, until there is no more" do
    body = "#{"a" * 200_000}!"
    stage = ContentCoding::Brotli.new(ReversingBrotli.new)
    pieces = []
    [body[0, 100_000], body[100_000..]].each { |bytes| stepped(stage, bytes) { |piece| pieces << piece } }
    assert_equal body.reverse, pieces.join
    assert_operator pieces.map(&:bytesize).max, :<=, 65_536
    assert_predicate stage, :complete?
    stepped(stage, "garbage?") { flunk "garbage was decoded" }
    refute_predicate stage, :mislabelled?
  end

  test "br that is broken or cut off is corrupt" do
    stage = -> { ContentCoding::Brotli.new(ReversingBrotli.new) }
    assert_raises(ContentCoding::Corrupt) { ContentCoding::Decoder.new([stage.call], max_bytes: nil) << "what?" }
    decoder = ContentCoding::Decoder.new([stage.call], max_bytes: nil)
    assert_equal "", decoder << "what"
    assert_raises(ContentCoding::Corrupt) { decoder.finish }
    assert_raises(ContentCoding::TooLarge) { ContentCoding::Decoder.new([stage.call], max_bytes: 4) << "what!" }
  end

  # The real gems, where they are there.
  {"br" => ->(body) { Brotli.deflate(body) }, "zstd" => ->(body) { Zstd.compress(body) }}.each do |coding, encode|
    next unless Hikyaku::HTTP::ContentCoding.accepted.split(", ").include?(coding)

    test "#{coding} is decoded by its gem" do
      [TEXT, "", "x", TEXT * 10_000, Random.new(1).bytes(300_000)].each do |body|
        bytes = encode.call(body)
        [bytes.bytesize, 1_000, 1].each do |step|
          next if step == 1 && bytes.bytesize > 10_000
          assert_equal body, decode([coding], bytes, step: step)
          assert_equal body, decode([coding], bytes + "garbage", step: step)
        end
        [1, 2, bytes.bytesize / 2, bytes.bytesize - 1].uniq.each do |size|
          next unless size.between?(1, bytes.bytesize - 1)
          assert_raises(ContentCoding::Corrupt, "#{body.bytesize} bytes, #{size} encoded") { decode([coding], bytes.byteslice(0, size)) }
        end
      end
      assert_equal TEXT, decode([coding, "gzip"], Zlib.gzip(encode.call(TEXT)), step: 10)
      assert_raises(ContentCoding::Corrupt) { decode([coding], "<html>\xFF\xFF".b) }
    end

    test "a bomb of #{coding} is refused before more than one step of it is decoded" do
      bomb = encode.call("\0" * 50_000_000)
      counting = Counting.new((coding == "br") ? ContentCoding::Brotli.new : ContentCoding::Zstandard.new)
      assert_raises(ContentCoding::TooLarge) { ContentCoding::Decoder.new([counting], max_bytes: 1_000) << bomb }
      assert_operator counting.bytes, :<=, 200_000
    end
  end

  # Frames of zstd, made by hand. RFC 8878, section 3.1.
  MAGIC = "\x28\xB5\x2F\xFD".b.freeze
  SKIPPED = ["\x50\x2A\x4D\x18".b, [5].pack("V"), "never"].join.freeze

  def self.block(data, last: true, type: 0, size: data.bytesize) = [(size << 3) | (type << 1) | (last ? 1 : 0)].pack("V").byteslice(0, 3) + data

  HI = block("hi").freeze
  FRAMES = {
    "one segment" => "#{MAGIC}\x20\x02#{HI}".b,
    "with a checksum" => "#{MAGIC}\x24\x02#{HI}sums".b,
    "with a window" => "#{MAGIC}\x00\x58#{HI}".b,
    "with the largest window" => "#{MAGIC}\x00\x68#{HI}".b,
    "with a window and a size of 2 bytes" => "#{MAGIC}\x40\x58\x01\x00#{HI}".b,
    "with a window and a size of 4 bytes" => MAGIC + "\x80\x58\x02\x00\x00\x00".b + HI,
    "with the largest size" => MAGIC + "\xE0".b + [8_388_608].pack("Q<") + HI,
    "with a dictionary of 1 byte" => "#{MAGIC}\x21\x00\x02#{HI}".b,
    "with a dictionary of 2 bytes" => "#{MAGIC}\x22\x00\x00\x02#{HI}".b,
    "with a dictionary of 4 bytes and a window" => "#{MAGIC}\x03\x58\x00\x00\x00\x00#{HI}".b,
    "with a repeated byte" => "#{MAGIC}\x20\x02".b + block("x", type: 1, size: 100_000),
    "with three blocks" => "#{MAGIC}\x20\x06".b + block("he", last: false) + block("xx", last: false, type: 2) + HI,
    "with no data" => "#{MAGIC}\x20\x00".b + block(""),
    "with an empty block before the last" => "#{MAGIC}\x20\x02".b + block("", last: false) + HI,
    "one to be skipped" => SKIPPED,
    "one of no bytes to be skipped" => "\x5F\x2A\x4D\x18\0\0\0\0".b
  }.transform_values(&:freeze).freeze
  private_constant :MAGIC, :SKIPPED, :HI, :FRAMES

  test "a frame of zstd is followed to its end, however it is cut" do
    FRAMES.each do |what, bytes|
      (1..bytes.bytesize).each do |cut|
        frames = ContentCoding::Zstandard::Frames.new
        refute_predicate frames, :complete?
        first = frames.take(bytes.byteslice(0, cut))
        assert_equal cut == bytes.bytesize, frames.complete?, "#{what}, after #{cut}"
        assert_equal bytes, first + frames.take(bytes.byteslice(cut..)), "#{what}, cut after #{cut}"
        assert_predicate frames, :complete?, what
      end
    end
  end

  test "frames of zstd may follow one another, and garbage the last; the garbage is not given on" do
    FRAMES.each_value do |one|
      FRAMES.each_value do |other|
        ["", "g", "gar", "garbage", MAGIC[0, 3], "\0" * 100].each do |garbage|
          bytes = one + other + garbage.b
          [bytes.bytesize, 1, 5].each do |step|
            frames = ContentCoding::Zstandard::Frames.new
            assert_equal one + other, pieces(bytes, step).map { |piece| frames.take(piece) }.join
            assert_predicate frames, :complete?
          end
        end
      end
    end
  end

  BROKEN_FRAMES = {
    "no frame" => "<html>", "another magic" => "\x27\xB5\x2F\xFD\x20\x00", "a reserved flag" => "#{MAGIC}\x28\x02", "a window too large" => "#{MAGIC}\x00\x69",
    "the largest window that there is" => MAGIC + "\x00\xFF".b, "a segment too large" => MAGIC + "\xE0".b + [8_388_609].pack("Q<"),
    "the largest segment that there is" => MAGIC + "\xE0".b + ("\xFF".b * 8), "a segment of 4 bytes too large" => MAGIC + "\xA0".b + [2**32 - 1].pack("V"),
    "a block of no type" => "#{MAGIC}\x20\x02".b + block("hi", type: 3)
  }.transform_values { |bytes| bytes.b.freeze }.freeze
  private_constant :BROKEN_FRAMES

  test "frames of zstd that are broken, or ask for too much memory, are corrupt before they are decoded" do
    BROKEN_FRAMES.each do |what, bytes|
      [bytes.bytesize, 1].each do |step|
        answers = [["", nil]] * 100
        zstd = ScriptedZstd.new(*answers)
        decoder = ContentCoding::Decoder.new([ContentCoding::Zstandard.new(zstd)], max_bytes: nil)
        assert_raises(ContentCoding::Corrupt, what) { feed(decoder, bytes, step) }
        refute_includes zstd.asked.join, bytes, what
      end
    end
  end

  test "zstd is asked until it has given all that it holds" do
    full = "x" * 131_072
    zstd = ScriptedZstd.new([full, 3], [full, nil], [full, 0], ["tail", 0])
    pieces = []
    stage = ContentCoding::Zstandard.new(zstd)
    stepped(stage, FRAMES["one segment"]) { |piece| pieces << piece }
    assert_equal [full, full, full, "tail"], pieces
    assert_equal [FRAMES["one segment"], FRAMES["one segment"][3..], "", ""], zstd.asked
    assert_predicate stage, :complete?
  end

  test "zstd is asked nothing when there is nothing to ask" do
    zstd = ScriptedZstd.new
    stage = ContentCoding::Zstandard.new(zstd)
    stepped(stage, MAGIC[0, 3]) { flunk "something came out" }
    assert_empty zstd.asked
    refute_predicate stage, :complete?
  end

  test "zstd that fails, stands still or is cut off is corrupt" do
    frame = FRAMES["one segment"]
    decoder = ->(*answers) { ContentCoding::Decoder.new([ContentCoding::Zstandard.new(ScriptedZstd.new(*answers))], max_bytes: nil) }
    assert_raises(ContentCoding::Corrupt) { decoder.call << frame }
    assert_raises(ContentCoding::Corrupt) { decoder.call(["", 0], ["hi", nil]) << frame }
    cut_off = decoder.call(["h", nil])
    assert_equal "h", cut_off << frame.chop
    assert_raises(ContentCoding::Corrupt) { cut_off.finish }
  end

  private

  def stepped(stage, bytes)
    while bytes
      piece, bytes = stage.step(bytes)
      yield piece unless piece.empty?
    end
  end

  def pieces(bytes, step) = (0...bytes.bytesize).step([step, 1].max).map { |at| bytes.byteslice(at, [step, 1].max) }

  def feed(decoder, bytes, step) = pieces(bytes, step).map { |piece| decoder << piece }.join + decoder.finish

  def decode(codings, bytes, step: bytes.bytesize, max_bytes: nil) = feed(ContentCoding.decoder(codings, max_bytes: max_bytes), bytes, step)

  def decode_parts(codings, *parts)
    decoder = ContentCoding.decoder(codings, max_bytes: nil)
    parts.map { |part| decoder << part }.join + decoder.finish
  end
end
