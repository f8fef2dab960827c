# frozen_string_literal: true

require "test_helper"
require "hikyaku/log/crc32c"
require "open3"

class CRC32CTest < Minitest::Test
  CRC32C = Hikyaku::Log::CRC32C

  # Bit by bit, as the polynomial says.
  def bit_by_bit(bytes)
    crc = bytes.each_byte.inject(0xffffffff) do |sum, byte|
      8.times.inject(sum ^ byte) { |value, _| (value >> 1) ^ (value.odd? ? 0x82F63B78 : 0) }
    end
    crc ^ 0xffffffff
  end

  test "the examples of RFC 3720, appendix B.4, come out" do
    scsi_read = "01c00000000000000000000000000000140000000000040000000014000000182800000000000000 0200000000000000".delete(" ")
    {
      "\0" * 32 => 0x8A9136AA,
      "\xFF".b * 32 => 0x62A8AB43,
      (0..31).to_a.pack("C*") => 0x46DD794E,
      31.downto(0).to_a.pack("C*") => 0x113FDB5C,
      [scsi_read].pack("H*") => 0xD9963A56,
      "123456789" => 0xE3069283,
      "" => 0
    }.each { |bytes, crc| assert_equal format("%08x", crc), format("%08x", CRC32C.of(bytes)), bytes.inspect }
  end

  test "texts of every length come out as bit by bit, whichever way they go" do
    random = Random.new(7)
    lengths = [*0..70, *(2040..2060), *(4100..4110), 5000, 8256, 10_001, 33_000, 65_544]
    lengths.each do |length|
      bytes = random.bytes(length)
      assert_equal bit_by_bit(bytes), CRC32C.of(bytes), "#{length} bytes"
    end
  end

  test "a checksum goes on from that of what stands before, wherever it is cut" do
    bytes = Random.new(8).bytes(6_000)
    whole = CRC32C.of(bytes)
    [0, 1, 3, 8, 1000, 2048, 3333, 5999, 6000].each do |cut|
      assert_equal whole, CRC32C.update(CRC32C.of(bytes.byteslice(0, cut)), bytes.byteslice(cut..)), "cut at #{cut}"
    end
  end

  test "the extension gives the same" do
    random = Random.new(10)
    program = <<~RUBY
      require "hikyaku/log/crc32c"
      exit 2 if Hikyaku::Log::CRC32C.use_native
      begin
        require "hikyaku/native"
      rescue LoadError
        exit 3
      end
      exit 4 unless Hikyaku::Log::CRC32C.use_native
      ARGV.each { |text| bytes = [text].pack("H*"); puts Hikyaku::Log::CRC32C.update(Hikyaku::Log::CRC32C.of(bytes), bytes) }
    RUBY
    texts = [0, 1, 7, 8, 100, 5000].map { |size| random.bytes(size) }
    out, status = Open3.capture2(RbConfig.ruby, "-I#{File.expand_path("../../lib", __dir__)}", "-e", program, *texts.map { |text| text.unpack1("H*") })
    skip "the extension is not compiled" if status.exitstatus == 3
    assert_predicate status, :success?
    assert_equal texts.map { |text| CRC32C.update(CRC32C.of(text), text) }, out.lines.map(&:to_i)
  end

  test "every single bit that is turned is found, in a folded text, too" do
    bytes = Random.new(9).bytes(2_100)
    whole = CRC32C.of(bytes)
    (0...2_100).step(13) do |at|
      turned = bytes.dup
      turned.setbyte(at, turned.getbyte(at) ^ (1 << at % 8))
      refute_equal whole, CRC32C.of(turned), at
    end
  end
end
