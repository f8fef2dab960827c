# frozen_string_literal: true

require "test_helper"
require "contracts/parser_contract"
require "http/messages"
require "hikyaku/native"

class HTTPNativeParserTest < Minitest::Test
  include ParserContract

  def native? = true

  test "it is what reads heads of responses wherever the extension is" do
    readers = %i[response request].map { |kind| Parser.new(kind).instance_variable_get(:@head_reader).class }
    assert_equal [Parser::NativeHeadReader, Parser::HeadReader], readers
  end

  test "messages at random come to the same as in Ruby" do
    random = Random.new(3)
    messages = Messages.new(random)
    5_000.times do
      bytes = messages.next(:response)
      limits = random.rand(4).zero? ? {line_bytes: random.rand(5..40), head_bytes: random.rand(20..120), headers: random.rand(0..4)} : {}
      settings = {method: %w[GET HEAD CONNECT].sample(random: random), first: random.rand(bytes.bytesize + 1), step: random.rand(4), limits: limits}
      assert_equal Outcome.of(:response, bytes, **settings), Outcome.of(:response, bytes, **settings, native: true), [bytes, settings].inspect
    end
  end

  test "a head survives the collector, wherever that comes" do
    GC.stress = true
    response = (parser_of(:response) << OK.sub("Content", "X-#{"Y" * 100}: #{"z" * 100}\r\nContent")).next
    GC.stress = false
    assert_equal [["x-#{"y" * 100}", "z" * 100], %w[content-length 2]], response.fields
  ensure
    GC.stress = false
  end
end
