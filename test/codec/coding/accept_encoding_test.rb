# frozen_string_literal: true

require "test_helper"
require "hikyaku/codec/accept"
require "hikyaku/codec/coding"

# What a client says of content codings, and what it gets. RFC 9110, section 12.5.3.
class CodingAcceptEncodingTest < Minitest::Test
  Coding = Hikyaku::Codec::Coding
  OFFERED = %i[zstd br gzip].freeze

  EXPECTED = {
    nil => :identity, # a client that says nothing is not one that can undo everything
    "" => :identity,
    " " => :identity,
    "gzip" => "gzip",
    "GZip" => "gzip",
    "x-gzip" => "gzip",
    "X-GZIP;q=0.3" => "gzip",
    "deflate" => :identity,
    "gzip, deflate, br, zstd" => "zstd",
    "gzip, deflate, br" => "br",
    "gzip;q=1.0, br;q=0.9" => "gzip",
    "br;q=0.9,gzip;q=0.8,zstd;q=0.001" => "br",
    "gzip;q=0.5, br;q=0.5" => "br",
    "gzip ; q=0.5 ,\tbr;Q=0.6" => "br",
    "zstd;q=0, gzip;q=0.1" => "gzip",
    "zstd;q=0.000, gzip;q=0.001" => "gzip",
    "gzip;q=0" => :identity,
    "gzip, gzip;q=0" => :identity,
    "gzip;q=0, x-gzip" => :identity,
    "*" => "zstd",
    "*;q=0.1, zstd;q=0, br;q=0" => "gzip",
    "gzip, *;q=0" => "gzip",
    "gzip, *;q=0.5" => "gzip",
    "identity" => :identity,
    "identity, gzip;q=0.9" => :identity,
    "identity, gzip" => "gzip",
    "identity;q=0.5, gzip;q=0.6" => "gzip",
    "identity;q=0.5, *;q=0.4" => :identity,
    "gzip;q=0.4, *;q=0.5, br;q=0, zstd;q=0" => :identity,
    "identity;q=0, gzip" => "gzip",
    "identity;q=0" => nil,
    "*;q=0" => nil,
    "*;q=0, identity" => :identity,
    "*;q=0, identity;q=0.1" => :identity,
    "deflate, identity;q=0" => nil,
    "gzip;q=0, *;q=0" => nil,
    # As lenient as with the field Accept, where old clients leave the 0 out.
    "gzip;q=.5" => "gzip",
    "gzip;q=.5, br;q=0.6" => "br",
    "gzip;q=0.6, br;q=.5, zstd;q=0." => "gzip",
    "identity;q=.5, gzip;q=.4" => :identity,
    "gzip;q=.0" => :identity,
    "gzip;q=." => :identity,
    "gzip;q=.1234" => :identity,
    "gzip;q=.5.5" => :identity,
    # Nonsense is passed over, and never taken for a yes.
    "gzip;q=2" => :identity,
    "gzip;q=-1" => :identity,
    "gzip;q=0.1234" => :identity,
    "gzip;q=" => :identity,
    "gzip;q=one" => :identity,
    "gzip;q=0,5" => :identity,
    "gzip;level=9;q=1" => :identity,
    "gzip;q=1;q=0" => :identity,
    "gz ip" => :identity,
    ",,;q=1,\x00,=,gzip,," => "gzip",
    "\xFF\xFE, gzip" => "gzip",
    "gzip\xC3" => :identity,
    "identity;q=nonsense" => :identity
  }.freeze

  test "weights, the asterisk and identity are understood as RFC 9110 has them, and nonsense is passed over" do
    EXPECTED.each do |header, expected|
      found = Coding.negotiate(header, OFFERED)
      found = found.name if found.respond_to?(:name) && !found.is_a?(Symbol)
      assert_equal [expected], [found], "Accept-Encoding: #{header.inspect}"
    end
  end

  test "a weight is one for a coding where it is one for a type" do
    %w[0 0. .5 .0 . 1 1. 1.0 1.000 1.001 0.999 0.9999 .999 .9999 00 01 -1 +1 1e0 0x1].each do |weight|
      type = Hikyaku::Codec::Accept.parse("text/plain;q=1, application/json;q=#{weight}").quality("application/json")
      assert_equal (type * 1_000).round, Coding::AcceptEncoding.parse("br, gzip;q=#{weight}").weight("gzip"), weight
    end
  end

  test "the order of what is offered decides between equals, and what is not offered is not chosen" do
    assert_equal "gzip", Coding.negotiate("br, gzip, zstd", %w[gzip zstd br]).name
    assert_equal "gzip", Coding.negotiate("br, zstd, gzip;q=0.1", [Coding[:gzip]]).name
    assert_equal :identity, Coding.negotiate("br, zstd", [:gzip])
    assert_equal :identity, Coding.negotiate("gzip", [])
    assert_nil Coding.negotiate("gzip, *;q=0", [])
  end

  test "a field that is longer than any honest one gets identity" do
    ["gzip,#{" " * 65_536}", "gzip,#{"x" * 65_536}", Array.new(10_000, "gzip").join(","), "#{"," * 33}gzip", "gzip#{"," * 32}", "identity;q=0,#{"a;q=0.1," * 9_000}"].each do |header|
      assert_equal :identity, Coding.negotiate(header, OFFERED)
    end
    assert_equal "gzip", Coding.negotiate("#{"a," * 31}gzip", OFFERED).name
  end

  NAMES = ["gzip", "x-gzip", "br", "zstd", "deflate", "identity", "*", "GZIP"].freeze
  WEIGHTS = {"" => 1_000, ";q=0" => 0, " ; q=0.5" => 500, ";Q=1.000" => 1_000, ";q=0.001" => 1}.freeze
  GARBAGE = ["gz ip", "gzip;q=2", "=", ";;", "\x00", "br;q=NaN", "zstd;q=0.0000", "q=1", "identity;q=", "*;q"].freeze

  test "random fields are read as the specification says, with members twice and garbage between them" do
    random = Random.new(8)
    1_000.times do
      members = Array.new(random.rand(1..5)) { [NAMES.sample(random: random), WEIGHTS.keys.sample(random: random)] }
      field = [*members.map(&:join), *GARBAGE.sample(random.rand(3), random: random)].shuffle(random: random)
      accepted = Coding::AcceptEncoding.parse(field.join(","))
      %w[gzip br zstd].each { |name| assert_equal weight(members, name) || 0, accepted.weight(name), field.inspect }
      assert_equal [weight(members, "identity")], [accepted.identity], field.inspect
      assert_equal [Coding.negotiate(field.join(","), OFFERED)], [Coding.negotiate((field * 2).join(", "), OFFERED)], field.inspect
    end
  end

  private

  # What is said of a coding by its name, or else by the asterisk; of several the lowest.
  def weight(members, name)
    [[name, *("x-gzip" if name == "gzip")], ["*"]].each do |names|
      weights = members.filter_map { |coding, weight| WEIGHTS.fetch(weight) if names.include?(coding.downcase) }
      return weights.min if weights.any?
    end
    nil
  end
end
