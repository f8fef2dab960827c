# frozen_string_literal: true

require "test_helper"
require "hikyaku/web/subscription_reader"

class GrantCacheTest < Minitest::Test
  Grant = Struct.new(:subject, :number)

  def setup
    @made = 0
    @grants = Hikyaku::Web::GrantCache.new(max_bytes: 20_000)
  end

  def fetch(access, *parameters, subject: "alice") = @grants.fetch(access, parameters) { Grant.new(subject, @made += 1) }

  test "the same values share a decision" do
    access = Object.new
    assert_same fetch(access, ["match", "/a"]), fetch(access, ["match", "/a"])
    assert_same fetch(nil, ["match", "/a"]), fetch(nil, ["match", "/a"])
    assert_equal 2, @made
  end

  test "no decision is ever served to other values" do
    access = Object.new
    granted = fetch(access, ["match", "/a"])
    others = [
      fetch(nil, ["match", "/a"]), fetch(Object.new, ["match", "/a"]), fetch(access, ["match", "/b"]),
      fetch(access, ["match_urlpattern", "/a"]), fetch(access, ["match", "/a"], ["match", "/b"]), fetch(access), fetch(access, ["match", "/a\0"])
    ]
    assert_equal 8, [granted, *others].uniq(&:number).size
  end

  test "a refusal is not remembered" do
    assert_raises(ArgumentError) { @grants.fetch(nil, [["match", "/a"]]) { raise ArgumentError } }
    assert_equal 1, fetch(nil, ["match", "/a"]).number
  end

  test "a subject can be forgotten" do
    alice, bob = Object.new, Object.new
    fetch(alice, ["match", "/a"])
    kept = fetch(bob, ["match", "/a"], subject: "bob")
    @grants.forget("alice")
    assert_equal 3, fetch(alice, ["match", "/a"]).number
    assert_same kept, fetch(bob, ["match", "/a"])
  end

  test "what is remembered is bounded" do
    1000.times { |i| fetch(nil, ["match", "/#{i}"]) }
    assert_operator @grants.size, :<, 40
  end
end
