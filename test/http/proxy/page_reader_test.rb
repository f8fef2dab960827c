# frozen_string_literal: true

require "test_helper"
require "zlib"
require "hikyaku/http/proxy/page_reader"
require "hikyaku/http/response"

# How much of a page is read as it passes.
class HTTPProxyPageReaderTest < Minitest::Test
  Proxy = Hikyaku::HTTP::Proxy
  URL = "http://a.example/"
  # In each 2 KiB one more image.
  SLICE = 2_048
  COUNT = 100
  PAGE = Array.new(COUNT) { |i| "<img src=#{i}>".ljust(SLICE) }.join.freeze
  private_constant :Proxy, :URL, :SLICE, :COUNT, :PAGE

  def setup
    @found, @times = [], 0
  end

  test "what is found in one piece is told at once, in whatever coding it comes" do
    [reading, reading(headers: [["content-encoding", "gzip"]])].zip([PAGE, Zlib.gzip(PAGE)]).each do |reading, piece|
      @found.clear
      reading << piece
      assert_equal [Array.new(COUNT) { |i| "#{URL}#{i}" }], @found
    end
  end

  test "when nobody wants the page any more nothing more of it is read, and nothing is told" do
    asked = 0
    reading = reading(budget: (shared = allowance(bytes: COUNT * SLICE)), wanted: -> { (asked += 1) < 10 })
    2.times { reading << PAGE }
    assert_empty @found
    reading(budget: shared) << PAGE
    assert_operator @found.first.size, :>, COUNT - 10
  end

  test "so many bytes of a page are read, and no more" do
    reading = self.reading
    5.times { |i| reading << "<img src=#{i}>".ljust(1_048_576) }
    assert_equal Array.new(4) { |i| ["#{URL}#{i}"] }, @found
  end

  test "for so many seconds of a processor a page is read, and what was found until then is told" do
    reading = Proxy::PageReader.new(Proxy::Scanner.new(base: URL, charset: "utf-8"), nil, allowance, -> { true }, clock: -> { @times += 0.1 }) { |found, _| @found << found.size }
    2.times { reading << PAGE }
    assert_equal [9], @found # and a tenth of a second for its coding
  end

  test "what all pages of a user may cost is not exceeded by any" do
    shared = allowance(bytes: 5 * SLICE)
    2.times { reading(budget: shared) << PAGE }
    assert_equal [5], @found.map(&:size)
    reading << PAGE
    assert_equal [5, COUNT], @found.map(&:size)
  end

  private

  def allowance(bytes: 1 << 30) = Proxy::PageReader::Budget.new(seconds: 1_000, bytes: bytes)

  def reading(headers: [], budget: allowance, wanted: -> { true })
    answer = Hikyaku::HTTP::Response.new(status: 200, headers: [["content-type", "text/html; charset=utf-8"], *headers], body: "", url: URL)
    Proxy::PageReader.of(answer, URL, budget: budget, wanted: wanted) { |found, _| @found << found.map(&:url) }
  end
end
