# frozen_string_literal: true

require "test_helper"
require "hikyaku/client/publisher/token_source"
require "jwt"

class PublisherTokenSourceTest < Minitest::Test
  S = Hikyaku::Publisher::TokenSource

  def jwt(claims) = JWT.encode(claims, "secret", "HS256")

  test "a fixed token stays, whatever happens" do
    source = S.new(jwt(exp: 1))
    assert_predicate source, :any?
    assert_equal jwt(exp: 1), source.token
    refute source.refused(source.token)
    assert_equal jwt(exp: 1), source.token
  end

  test "without a token there is none" do
    refute_predicate S.new(nil), :any?
    assert_nil S.new(nil).token
    assert_nil S.new(-> {}).token
  end

  test "a token is asked for again before it expires, and not before that" do
    now = 1000.0
    count = 0
    source = S.new(-> { jwt(exp: now + 100, n: count += 1) }, clock: -> { now })
    first = source.token
    now += 79
    assert_equal first, source.token
    now += 2
    second = source.token
    refute_equal first, second
    assert_equal 2, count
    # A long life is renewed a minute before its end.
    long = S.new(-> { jwt(exp: 100_000, n: count += 1) }, clock: -> { now })
    token = long.token
    now = 100_000 - 61
    assert_equal token, long.token
    now += 2
    refute_equal token, long.token
  end

  test "what does not say when it expires is kept until it is refused" do
    ["opaque", "a.b.c", JWT.encode({}, "s", "HS256"), "a.#{['{"exp":"x"}'].pack("m0").delete("=")}.c", "a.W10.c", "a._w.c"].each do |token|
      count = 0
      source = S.new(lambda {
        count += 1
        token
      }, clock: -> { 1e12 })
      3.times { assert_equal token, source.token }
      assert_equal 1, count, token
      assert source.refused(token)
      source.token
      assert_equal 2, count
    end
  end

  test "threads that are refused together ask once" do
    count = 0
    source = S.new(-> { "t#{count += 1}" })
    stale = source.token
    Array.new(8) do
      Thread.new do
        source.refused(stale)
        source.token
      end
    end.each { |thread| assert_equal "t2", thread.value }
  end

  test "a token that no header can carry is refused, without showing it" do
    ["", " ", "s3cret x", "s3cret\r\nx: y", "s3cret\n", "s3crét", "s3cret;", :s3cret, 3].each do |token|
      [-> { S.new(token) }, -> { S.new(-> { token }).token }].each do |attempt|
        error = assert_raises(Hikyaku::ConfigError, token.inspect) { attempt.call }
        refute_match(/s3cr/, error.message)
      end
    end
  end

  test "what the source raises reaches the caller, and the next call asks again" do
    answers = [-> { raise IOError, "down" }, -> { "t" }]
    source = S.new(-> { answers.shift.call })
    assert_raises(IOError) { source.token }
    assert_equal "t", source.token
  end

  test "inspect does not show the token" do
    source = S.new(-> { "s3cret" })
    source.token
    refute_match(/s3cret/, source.inspect)
  end
end
