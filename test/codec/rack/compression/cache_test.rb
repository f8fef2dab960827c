# frozen_string_literal: true

require "test_helper"
require "support/compressing_application"

# Identical bodies are compressed once, and nobody gets anything but what would have been made of the bytes of the response.
class CodecRackCompressionCacheTest < Minitest::Test
  Cache = Hikyaku::Codec::Rack::Compression.const_get(:Cache)
  TEXT = "{\"name\":\"value\"}," * 200
  JSON = {"content-type" => "application/json"}.freeze

  test "a body that comes again is kept, and from then on it is not compressed, whatever asks for it" do
    application = CompressingApplication.new(lint: false) { |env| [200, JSON.merge("etag" => "\"#{env["PATH_INFO"]}\""), [TEXT.dup]] }
    first, second = Array.new(2) { application.get(path: "/one").pieces.first }
    refute_same first, second
    assert_equal first, second
    assert_same second, application.get(path: "/two").pieces.first
    other = application.get("br").pieces.first
    refute_equal second, other
    assert_same other, application.get("br").pieces.first
    assert_same second, application.get.pieces.first
  end

  test "of bodies that come once nothing is kept" do
    cache = Cache.new(1_000_000)
    10_000.times { |index| cache.fetch("body #{index}", "gzip") { "coded" } }
    assert_equal 0, cache.bytes
    assert_operator cache.seen, :<=, 8_192
    cache.fetch("body 6000", "gzip") { "coded" }
    assert_operator cache.bytes, :>, 0, "so long ago it was not"
    assert_equal %w[one two two], %w[one two three].map { |coded| cache.fetch("body", "gzip") { coded } }
    assert_operator cache.bytes, :>, 0
  end

  test "bodies of two users never cross, not even with the same address, length, entity tag and hash" do
    [{"etag" => '"same"'}, {"cache-control" => "private"}, {"set-cookie" => "a=b"}].each do |fields|
      application = CompressingApplication.new(lint: false) do |env|
        text = "{\"secret of\":\"#{env["HTTP_AUTHORIZATION"]}\"}".ljust(900)
        text.define_singleton_method(:hash) { 1 }
        [200, JSON.merge(fields), [text]]
      end
      3.times do
        %w[ann bob].each do |user|
          %w[gzip br zstd].each { |coding| assert_equal "{\"secret of\":\"#{user}\"}", application.get(coding, authorization: user).text.rstrip }
        end
      end
    end
  end

  test "a body that is changed after it was sent does not change what is kept" do
    body = "#{TEXT}1"
    application = CompressingApplication.new(lint: false) { [200, JSON.dup, [body]] }
    first = Array.new(2) { application.get }.last
    body[-1] = "2"
    assert_equal ["#{TEXT}1", "#{TEXT}2"], [first, application.get].map(&:text)
    body = "#{TEXT}1"
    assert_same first.pieces.first, application.get.pieces.first
    assert_predicate first.pieces.first, :frozen?
  end

  test "what must not be stored is not, and with a cache of no bytes nothing is" do
    [[{"cache-control" => "no-store"}, {}], [{"cache-control" => "private, No-Store"}, {}], [{}, {cache_bytes: 0}]].each do |fields, options|
      application = CompressingApplication.new(lint: false, **options) { [200, JSON.merge(fields), [TEXT]] }
      assert_equal 4, Array.new(4) { application.get.pieces.first }.uniq(&:object_id).size
      assert_equal TEXT, application.get.text
    end
  end

  test "no more bytes are kept than there is room for, and what was used last stays" do
    cache = Cache.new(20_000)
    bodies = Array.new(30) { |index| index.to_s.ljust(1_500) }
    bodies.each do |body|
      2.times { cache.fetch(body, "gzip") { "coded #{body}" } }
      cache.fetch(bodies.first, "gzip") { flunk "it was forgotten" }
      assert_operator cache.bytes, :<=, 20_000
    end
    assert_operator cache.bytes, :>, 12_000
    cache.fetch(bodies.last, "gzip") { flunk "it was forgotten" }
    assert_equal "again", cache.fetch(bodies[1], "gzip") { "again" }
  end

  test "what every coding made of a body is counted" do
    cache = Cache.new(100_000)
    2.times { cache.fetch("a" * 1_000, "gzip") { "x" * 300 } }
    before = cache.bytes
    cache.fetch("a" * 1_000, "br") { "x" * 200 }
    assert_equal 200, cache.bytes - before
    assert_operator before, :>=, 1_300
    cache.fetch("a" * 1_000, "zstd") { cache.fetch("a" * 1_000, "zstd") { "x" * 100 } }
    assert_equal 300, cache.bytes - before
  end

  test "of two bodies with the same hash the last one is kept, and counted" do
    cache = Cache.new(100_000)
    bodies = %w[a b].map { |letter| (letter * 1_000).tap { |body| body.define_singleton_method(:hash) { 1 } } }
    bodies.each { |body| cache.fetch(body, "gzip") { "" } }
    sizes = Array.new(4) { |index| cache.fetch(bodies[index % 2], "gzip") { bodies[index % 2][0] * 10 }.then { cache.bytes } }
    assert_equal 1, sizes.uniq.size
    assert_equal "bbbbbbbbbb", cache.fetch(bodies[1], "gzip") { flunk "it was forgotten" }
  end

  test "a body that would fill the cache is not kept" do
    cache = Cache.new(80_000)
    assert_equal %w[one two three], %w[one two three].map { |coded| cache.fetch("a" * 10_001, "gzip") { coded } }
    assert_equal 0, cache.bytes
  end

  test "an error while compressing leaves nothing behind" do
    cache = Cache.new(80_000)
    3.times { assert_raises(IOError) { cache.fetch("a", "gzip") { raise IOError } } }
    assert_equal [0, "fine"], [cache.bytes, cache.fetch("a", "gzip") { "fine" }]
  end

  test "threads that fill and ask at the same time get what belongs to their bodies" do
    cache = Cache.new(50_000)
    threads = Array.new(8) do |thread|
      Thread.new do
        random = Random.new(thread)
        500.times do
          body = random.rand(60).to_s.ljust(1_000)
          assert_equal "coded #{body}", cache.fetch(body, "gzip") { "coded #{body}" }
        end
      end
    end
    threads.each(&:join)
    assert_operator cache.bytes, :<=, 50_000
  end

  test "what clients send cannot make the memory of choices grow" do
    memory = Hikyaku::Codec::Rack::Compression.const_get(:Memory).new
    1_000.times { |index| assert_equal index, memory.fetch("field #{index}") { index } }
    assert_operator memory.size, :<=, 64
    assert_equal 3, memory.fetch("field 3") { flunk "it was forgotten" }
    long = Hikyaku::Codec::Rack::Compression.const_get(:Memory).new
    long.fetch("x" * 200) { 1 }
    assert_equal 0, long.size
  end
end
