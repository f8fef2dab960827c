# frozen_string_literal: true

require "test_helper"
require "hikyaku/codec/rack/representation"
require "hikyaku/http/content_coding"
require "support/compressing_application"
require "support/generated_objects"

# What an application gives, and what a client has of it in the end: the same in each format, with each coding, whole and in pieces.
class CodecRackRoundTripTest < Minitest::Test
  Codec = Hikyaku::Codec
  SEED = Integer(ENV.fetch("HIKYAKU_TEST_SEED", "8"))
  CODINGS = [nil, "gzip", "br", "zstd"].freeze

  test "generated objects are the same through every format and coding, whole and in pieces" do
    CODINGS.product(Codec.formats).each do |coding, format|
      lists.each do |list|
        expected = format.load(format.dump(list))
        [list, list.each].each { |object| assert_equal expected, received(application(object), coding, format), "#{format.name} #{coding}" }
      end
    end
  end

  test "what comes a second and a third time is the same as what came first, for each coding in turn" do
    application = application(lists.first)
    3.times do
      CODINGS.product(Codec.formats).shuffle(random: Random.new(SEED)).each do |coding, format|
        assert_equal format.load(format.dump(lists.first)), received(application, coding, format)
      end
    end
  end

  private

  # @return [Array<Array>] some of a few bytes, some of many
  def lists
    @lists ||= begin
      generator = GeneratedObjects.new(Random.new(SEED))
      Array.new(8) { |index| Array.new(1 + index * 3) { generator.next(3) } }
    end
  end

  def application(object)
    CompressingApplication.new(min_bytes: 1) { |env| Codec::Rack::Representation.represent(object, env) }
  end

  # By decoders of ours, as the client over HTTP has them, and by those of the libraries.
  def received(application, coding, format)
    answer = application.get(coding, accept: format.media_type)
    assert_equal [200, coding, format.media_type, "Accept, Accept-Encoding"],
      [answer.status, answer["content-encoding"], answer["content-type"], answer["vary"]]
    decoder = Hikyaku::HTTP::ContentCoding.decoder([coding.to_s], max_bytes: 10_000_000)
    bytes = decoder ? answer.pieces.map { |piece| decoder << piece }.join + decoder.finish : answer.bytes
    assert_equal answer.text.b, bytes.b
    format.load(bytes)
  end
end
