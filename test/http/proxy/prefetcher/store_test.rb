# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/proxy/prefetcher"

# Who may be given what was fetched ahead.
class HTTPProxyPrefetcherStoreTest < Minitest::Test
  Prefetch = Hikyaku::HTTP::Proxy::Prefetcher::Prefetch
  SCRIPT = [["accept", "*/*"], ["user-agent", "test"], ["cookie", "a=b"]].freeze
  IMAGE = [["accept", "image/avif,image/*,*/*;q=0.8"], *SCRIPT.drop(1)].freeze
  PUBLIC = {"cache-control" => "max-age=9"}.freeze
  private_constant :Prefetch, :SCRIPT, :IMAGE, :PUBLIC

  test "who asks as a browser does is given it, whatever was left out, and nobody who asks for something else" do
    assert suits?(:image, IMAGE, [["accept", "image/jxl,image/avif,image/*,*/*;q=0.8"], ["user-agent", "another"], ["cookie", "a=b"], ["dnt", "1"]])
    assert suits?(:script, SCRIPT, SCRIPT)
    refute suits?(:image, IMAGE, [["accept", "application/json"], *IMAGE.drop(1)])
    refute suits?(:image, IMAGE, [["accept", "image/png"], *IMAGE.drop(1)])
    refute suits?(:script, SCRIPT, [["accept", "application/json"], *SCRIPT.drop(1)])
    refute suits?(:other, SCRIPT, [["accept", "application/json"], *SCRIPT.drop(1)])
    assert suits?(:other, SCRIPT, SCRIPT)
  end

  test "who has a field that browsers do not say by themselves is given what was asked for with that" do
    %w[origin x-requested-with x-api-key].each do |name|
      refute suits?(:image, IMAGE, IMAGE + [[name, "x"]]), name
      assert suits?(:image, IMAGE + [[name, "x"]], IMAGE + [[name, "x"]]), name
      refute suits?(:image, IMAGE + [[name, "x"]], IMAGE + [[name, "x"], [name, "y"]]), name
    end
  end

  test "what depends on fields is for those who say the same there, what depends on anything for those who say the same in all" do
    refute suits?(:image, IMAGE, [IMAGE[0], %w[user-agent another], IMAGE[2]], PUBLIC.merge("vary" => "User-Agent"))
    made = {"cache-control" => "private"}
    assert suits?(:script, SCRIPT, SCRIPT + [["via", "1.1 a"], ["if-none-match", '"a"']], made)
    refute suits?(:script, SCRIPT, [SCRIPT[0], %w[user-agent another], SCRIPT[2]], made)
    refute suits?(:script, SCRIPT, SCRIPT + [%w[accept-language de]], made)
    refute suits?(:script, SCRIPT, SCRIPT, PUBLIC.merge("vary" => "*"))
    refute suits?(:image, IMAGE, IMAGE, {"vary" => "*"})
  end

  test "what has no content coding is for everybody who does not refuse that, whatever was said of codings" do
    vary = PUBLIC.merge("vary" => "Accept-Encoding, Origin")
    {"gzip, deflate, br" => true, "" => true, "*" => true, "gzip;q=0" => true, "*;q=0, identity;q=0.1" => true, "br, IDENTITY ; q=0.001" => true, "identity;q=1, *;q=0" => true,
     "identity;q=0" => false, "gzip, Identity; q=0.000" => false, "gzip, *;q=0.0" => false, "gzip,*; Q=0" => false, "*;q=1, identity;q=0." => false}.each do |value, suits|
      assert_equal suits, suits?(:image, IMAGE, IMAGE + [["accept-encoding", value]], vary), value
    end
    asked = IMAGE + [%w[accept-encoding gzip]]
    assert suits?(:image, asked, IMAGE, vary)
    refute suits?(:image, IMAGE, asked, vary.merge("content-encoding" => "gzip"))
    refute suits?(:image, IMAGE, asked, vary, status: 206)
    refute suits?(:image, IMAGE, asked - [IMAGE.assoc("user-agent")], vary.merge("vary" => "Accept-Encoding, User-Agent"))
    refute suits?(:image, IMAGE, asked, vary.merge("vary" => "Accept-Encoding, *"))
  end

  private

  def suits?(kind, sent, said, fields = PUBLIC, status: 200)
    answer = Hikyaku::HTTP::Response.new(status: status, headers: fields.to_a, body: "", url: "http://a/")
    Prefetch.new(kind: kind, headers: sent, sent: sent).suits?(said, answer)
  end
end
