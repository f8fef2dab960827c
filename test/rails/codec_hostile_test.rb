# frozen_string_literal: true

require "test_helper"
require "zlib"
require "support/codec_application"
require "support/generated_objects"
require "support/mutated_bytes"
require "hikyaku/codec"
require "support/rails_application"

# A Rails application that reads bodies in MessagePack, and what strangers send it: every answer is one to them, and none is 500.
class CodecHostileTest < Minitest::Test
  PACKED = "application/vnd.msgpack"
  JSON_TYPE = "application/json"
  SEED = Integer(ENV.fetch("HIKYAKU_TEST_SEED", "8"))
  ROUNDS = 900

  class << self
    def application = CodecApplication.shared(codec: true, codec_params: {max_bytes: 10_000, max_depth: 20, max_items: 1_000})
  end

  test "bodies that were changed at random become params, or a 400" do
    statuses = bodies.map do |type, body|
      answer = post(body, type)
      assert_includes [200, 400], answer.status, "#{type}: #{body.inspect[0, 400]}"
      assert_match(/\AMessagePack: [^#]{20,200}\z/, answer.value["detail"]) if answer.status == 400 && type == PACKED
      [type, answer.status]
    end
    assert_equal 4, statuses.uniq.size
    assert_operator statuses.tally.values.min, :>, ROUNDS / 40, statuses.tally.inspect
  end

  test "a body that says that it is gzip is not undone, and what is no MessagePack then is refused" do
    body = Zlib.gzip("\x81\xA1a\xDB\x00\x98\x96\x80".b + "x" * 10_000_000)
    assert_operator body.bytesize, :<, 10_000
    [PACKED, JSON_TYPE].each { |type| assert_equal 400, post(body, type, content_encoding: "gzip").status }
  end

  BOMBS = ["\xDF\xFF\xFF\xFF\xFF", "\xDD\xFF\xFF\xFF\xFF", "\xDB\xFF\xFF\xFF\xFF", "\xC6\xFF\xFF\xFF\xFF",
    "\xC9\xFF\xFF\xFF\xFF\xFF", "\x91" * 9_000, "\x81\xA1a" * 3_000,
    "\xDC\x03\xE8" * 3_000, "\xDE\x03\xE7\xA1a" * 2_000, "\xDD\x00\x00\x26\x00" + "\xC0" * 0x2600].freeze

  test "what claims to be much takes no memory" do
    skip "needs /proc" unless File.exist?("/proc/self/clear_refs")
    post("\x80".b, PACKED, count: true)
    BOMBS.each do |bytes|
      answer = post(bytes.b, PACKED, count: true)
      assert_equal 400, answer.status, bytes[0, 5].inspect
      assert_operator answer.peak, :<, 16_000_000, bytes[0, 5].inspect
    end
  end

  # What clients say of what they accept, and which of [200, JSON], [200, MessagePack] and 406 it may become.
  LIES = {
    Array.new(10_000) { |index| "application/x-#{index};q=0.#{index % 1_000}" }.join(",") => [406],
    (["application/vnd.msgpack"] * 10_000).join(",") => [PACKED],
    (["*/*"] * 10_000).join(",") => [JSON_TYPE],
    "*/*;q=0" => [406], "*/*;q=0, */*;q=0.0, */*;q=0.000" => [406], "*/*;q=0, application/json" => [JSON_TYPE],
    "application/json, application/json;q=0, */*;q=0" => [JSON_TYPE], "application/json;q=0, application/json, application/vnd.msgpack;q=0.5" => [JSON_TYPE],
    "application/json;q=1e9, application/vnd.msgpack;q=0x1" => [JSON_TYPE],
    "application/json;q=-0.1,application/vnd.msgpack;q=0.5" => [PACKED], "application/json;q=;q=,application/vnd.msgpack" => [PACKED],
    "application/json;q=0.1;q=1, application/vnd.msgpack;q=0.2" => [PACKED], "application/json;q=\u0661, application/vnd.msgpack".b => [PACKED],
    "," * 100_000 => [JSON_TYPE], "a" * 100_000 => [JSON_TYPE], "*/json, application/" => [JSON_TYPE], "\"" * 5_000 => [JSON_TYPE]
  }.freeze

  test "whatever the field Accept says, it is answered in a type that it allows, or with 406" do
    LIES.each do |accept, expected|
      answer = self.class.application.get("/either", accept)
      assert_includes [200, 406], answer.status, accept[0, 60]
      assert_includes expected, (answer.status == 406) ? 406 : answer["content-type"][/[^;]+/], accept[0, 60]
      assert_equal "Accept", answer["vary"]
    end
  end

  private

  def post(body, type, **fields) = self.class.application.get("/taken", method: "POST", body: body, type: type, **fields)

  # @return [Array<Array(String, String)>] types and bodies
  def bodies
    random = Random.new(SEED)
    generator = GeneratedObjects.new(random)
    objects = Array.new(60) { {"given" => generator.next(2)} }
    {PACKED => :msgpack, JSON_TYPE => :json}.flat_map do |type, name|
      seeds = objects.map { |object| Hikyaku::Codec[name].dump(object) }
      changed = {name => seeds, :gzip => seeds.map { |bytes| Zlib.gzip(bytes) }}.map { |kind, all| MutatedBytes.new(random, all, kind) }
      made = Array.new(ROUNDS) { changed[0].next }
      (made + Array.new(ROUNDS / 4) { changed[1].next }).map { |body| [type, body] }
    end
  end
end
