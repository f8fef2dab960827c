# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "support/compressing_application"

# Identical bodies are compressed once, and nobody gets anything but what would have been made of the bytes of the response.
class CodecRackCompressionCacheTest < Minitest::Test
  Cache = Hikyaku::Codec::Rack::Compression.const_get(:Cache)
  TEXT = "{\"name\":\"value\"}," * 200
  JSON = {"content-type" => "application/json"}.freeze

  test "a body is compressed once for each coding, whatever asks for it" do
    application = CompressingApplication.new(lint: false) { |env| [200, JSON.merge("etag" => "\"#{env["PATH_INFO"]}\""), [TEXT.dup]] }
    %w[gzip br zstd].each_with_index do |name, index|
      calls = compressions(name) do
        first, second, third = %w[/one /one /two].map { |path| application.get(name, path: path).pieces.first }
        assert_equal [first, TEXT], [second, application.get(name).text]
        assert_same second, third
      end
      assert_equal 1, calls, index
    end
    assert_equal(0, %w[gzip br zstd].sum { |name| compressions(name) { application.get(name) } })
  end

  test "what comes once pushes out what came once, and nothing of what came again" do
    cache = Cache.new(100_000)
    useful = Array.new(20) { |index| "useful #{index}".ljust(1_000) }
    2.times { useful.each { |body| cache.fetch(body, "gzip") { "coded #{body}" } } }
    10_000.times { |index| cache.fetch("body #{index}".ljust(3_000), "gzip") { "coded" } }
    useful.each { |body| assert_equal "coded #{body}", cache.fetch(body, "gzip") { flunk "it was forgotten" } }
    assert_operator cache.bytes, :<=, 100_000
    assert_equal %w[once once], Array.new(2) { cache.fetch("body 9999".ljust(3_000), "gzip") { flunk "it was forgotten" } }.map { "once" }
    assert_equal %w[again again], Array.new(2) { |index| cache.fetch("body 6000".ljust(3_000), "gzip") { index.zero? ? "again" : flunk("it was forgotten") } }
    assert_equal "new", cache.fetch("body 1".ljust(3_000), "gzip") { "new" }
  end

  test "of bodies that came once only so many hashes are known" do
    seen = Cache.const_get(:Seen).new
    refute(Array.new(10_000) { |index| seen.again?(index) }.any?)
    assert_operator seen.size, :<=, 8_192
    assert_equal [true, true, false], [9_999, 6_000, 1].map { |hash| seen.again?(hash) }
  end

  test "the latest bodies are there byte by byte as long as there is room, in any order, and no longer" do
    random = Random.new(8)
    latest = Cache.const_get(:Latest).new(10_000, 100)
    kept, sizes = [], []
    3_000.times do |number|
      if random.rand(6).zero? && (plain, coded = kept.reject(&:empty?).sample(random: random))
        found = nil
        latest.take(plain.hash, plain) { |*same| found = same }
        assert_equal [plain, "gzip", coded], found
        latest.take(plain.hash, plain) { flunk "it is still there" }
        kept[kept.index([plain, coded])] = []
      else
        plain = "\u00E9#{number}#{"x" * random.rand(1_500)}".b
        coded = random.bytes(random.rand(600))
        kept << [plain, coded]
        sizes << plain.bytesize + coded.bytesize
        latest.keep(plain.hash, plain, "gzip", coded)
        # What was taken leaves its room empty until it is written over, and before the end there may be too little for the next.
        kept.shift && sizes.shift while sizes.sum > 7_500
      end
      assert_operator latest.bytes - 200 * latest.size, :<=, 10_000
    end
    refute_empty kept.flatten
    latest.keep(1, "x" * 9_000, "gzip", "y" * 1_000)
    latest.take(1, "z" * 9_000) { flunk "it is another one" }
    assert_equal 1, latest.size
    kept.each { |plain,| plain && latest.take(plain.hash, plain) { flunk "it was written over" } }
    latest.keep(1, "x" * 9_000, "gzip", "y" * 1_001)
    latest.take(1, "x" * 9_000) { flunk "there is no room for it" }
  end

  test "bodies of a few bytes take up more than those, and there are no more of them than that allows" do
    cache = Cache.new(400_000)
    10_000.times do |index|
      cache.fetch("k#{index}", "gzip") { "" }
      assert_operator cache.bytes, :<=, 400_000
    end
    latest = Cache.const_get(:Latest).new(100_000, 125)
    200.times { |index| latest.keep(index, "k#{index}", "gzip", "") }
    assert_equal [125, 125_000], [latest.size, latest.most]
    assert_operator latest.bytes, :>=, 125 * 200
    latest.take(74, "k74") { flunk "there is no place for it" }
    found = nil
    latest.take(75, "k75") { |*same| found = same }
    assert_equal ["k75", "gzip", ""], found
    10_000.times { |index| 2.times { cache.fetch("again #{index}", "gzip") { "" } } }
    assert_operator cache.bytes, :<=, 400_000
  end

  test "a cache that has room for no place works all the same" do
    cache = Cache.new(1_000)
    assert_equal %w[one two two], %w[one two three].map { |coded| cache.fetch("a", "gzip") { coded } }
  end

  test "bodies of two users never cross, not even with the same address, length, entity tag and hash" do
    [{"etag" => '"same"'}, {"cache-control" => "private"}, {"set-cookie" => "a=b"}, {"vary" => "Authorization"}].each do |fields|
      application = CompressingApplication.new(lint: false) do |env|
        [200, JSON.merge(fields), ["{\"secret of\":\"#{env["HTTP_AUTHORIZATION"]}\"}".ljust(900)]]
      end
      colliding application.middleware.instance_variable_get(:@cache)
      3.times do
        %w[ann bob].each do |user|
          %w[gzip br zstd].each { |coding| assert_equal "{\"secret of\":\"#{user}\"}", application.get(coding, authorization: user).text.rstrip }
        end
      end
    end
  end

  test "the same bytes are one body, whatever encoding they are said to have" do
    cache = Cache.new(100_000)
    assert_equal "one", cache.fetch("\u00E9" * 500, "gzip") { "one" }
    ["\u00E9".b, (+"\u00E9").force_encoding("ISO-8859-1")].each { |each| assert_equal "one", cache.fetch(each * 500, "gzip") { flunk "it was forgotten" } }
  end

  test "of a response nothing but the body is kept" do
    application = CompressingApplication.new(lint: false) { |env| [200, JSON.merge("set-cookie" => "user=#{env["HTTP_AUTHORIZATION"]}"), [TEXT.dup]] }
    answers = %w[ann bob cid].map { |user| application.get(authorization: user) }
    assert_equal %w[user=ann user=bob user=cid], answers.map { |answer| answer["set-cookie"] }
    assert_equal 1, answers.map(&:bytes).uniq.size
    refute_same answers[1].headers, answers[2].headers
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
      assert_equal 4, compressions("gzip") { 4.times { application.get } }
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
    colliding cache
    bodies = %w[a b].map { |letter| letter * 1_000 }
    bodies.each { |body| cache.fetch(body, "gzip") { body[0] * 10 } }
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

  private

  # Every body has the same hash.
  def colliding(cache) = cache.define_singleton_method(:hash_of) { |_plain| 1 }

  # How often something is compressed.
  def compressions(name, &block)
    coding = Hikyaku::Codec::Coding[name]
    calls = 0
    coding.stub(:compress, lambda { |bytes, **options|
      calls += 1
      coding.class.instance_method(:compress).bind_call(coding, bytes, **options)
    }, &block)
    calls
  end
end
