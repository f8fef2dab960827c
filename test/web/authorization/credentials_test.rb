# frozen_string_literal: true

require "test_helper"
require_relative "tokens"

# Mercure draft-08, section "Presenting the Access Token".
class CredentialsTest < Minitest::Test
  COOKIE = "__Secure-mercure_access_token"

  def find(env = {}, **options)
    Hikyaku::Web::Authorization.token_of({"REQUEST_METHOD" => "GET", "QUERY_STRING" => ""}.merge(env), **options)
  end

  test "without a token there is none" do
    assert_equal [nil, nil], find
    assert_equal [nil, nil], find({"HTTP_COOKIE" => "a=b; c"})
    assert_equal [nil, nil], find({"HTTP_COOKIE" => ""}, legacy: true)
  end

  # RFC 6750 section 2.1; RFC 9110 section 11.1.
  test "the header is the word Bearer in any case, a space and the token" do
    ["Bearer a.b.c", "bearer a.b.c", "BEARER a.b.c", "Bearer  a.b.c", " Bearer a.b.c ", "Bearer a.b.c\t"].each do |header|
      assert_equal ["a.b.c", :header], find({"HTTP_AUTHORIZATION" => header})
    end
    ["a", "a-b._~+/c==", "x" * 100_000].each { |token| assert_equal token, find({"HTTP_AUTHORIZATION" => "Bearer #{token}"}).first }
  end

  # Section "Error Responses": a malformed presentation is 400 with invalid_request.
  test "a header that is anything else is refused, even beside a good cookie" do
    ["", " ", "Bearer", "Bearer ", "Bearera.b.c", "a.b.c", "Basic dXNlcjpwYXNz", "Greater a.b.c", "Bearer a b", "Bearer a.b.c, Bearer d.e.f",
      "Bearer a.b.c,d", "Bearer a.b.c\nX: y", "Bearer a\u0000b", "Bearer é", "Bearer \xFF", "Bearer \"a.b.c\"", "Bearer token=a.b.c",
      "Bearer\ta.b.c", "Bearer =a", "DPoP a.b.c"].each do |header|
      error = assert_raises(Hikyaku::Web::Authorization::InvalidRequest, header.inspect) do
        find({"HTTP_AUTHORIZATION" => header, "HTTP_COOKIE" => "#{COOKIE}=a.b.c"})
      end
      assert_equal [400, "invalid_request"], [error.status, error.code]
    end
  end

  # Section "Presenting the Access Token": the header is used and the cookie ignored.
  test "the header goes before the cookie" do
    assert_equal ["h", :header], find({"HTTP_AUTHORIZATION" => "Bearer h", "HTTP_COOKIE" => "#{COOKIE}=c"})
  end

  test "the cookie is used without the header" do
    ["#{COOKIE}=a.b.c", "x=1; #{COOKIE}=a.b.c", "x=1;#{COOKIE}=a.b.c;y=2", " #{COOKIE} = a.b.c ", "#{COOKIE}=\"a.b.c\"",
      "#{COOKIE}=a.b.c; #{COOKIE}=second", "x; =; #{COOKIE}=a.b.c"].each do |cookies|
      assert_equal ["a.b.c", :cookie], find({"HTTP_COOKIE" => cookies}), cookies
    end
    assert_equal ["a=b", :cookie], find({"HTTP_COOKIE" => "#{COOKIE}=a=b"})
    assert_equal ["", :cookie], find({"HTTP_COOKIE" => "#{COOKIE}="})
  end

  test "the cookie's name is exact, and the configured one" do
    ["mercure_access_token=a", "#{COOKIE.downcase}=a", "x#{COOKIE}=a", "#{COOKIE}x=a", "mercureAuthorization=a"].each do |cookies|
      assert_equal [nil, nil], find({"HTTP_COOKIE" => cookies}), cookies
    end
    assert_equal ["a", :cookie], find({"HTTP_COOKIE" => "hub=a"}, cookie_name: "hub")
    assert_equal [nil, nil], find({"HTTP_COOKIE" => "#{COOKIE}=a"}, cookie_name: "hub")
  end

  test "a token in the query is not looked at" do
    %w[GET HEAD QUERY POST].each do |method|
      %w[access_token authorization].each do |name|
        assert_equal [nil, nil], find({"REQUEST_METHOD" => method, "QUERY_STRING" => "#{name}=a.b.c"})
      end
    end
    assert_equal [nil, nil], find({"QUERY_STRING" => "access_token=a.b.c"}, legacy: true)
  end

  # Mercure 0.x, sections "URI Query Parameter" and "Cookie".
  test "0.x: the query stands between header and cookie, for reading only" do
    query = {"QUERY_STRING" => "topic=x&authorization=q", "HTTP_COOKIE" => "#{COOKIE}=c"}
    assert_equal ["q", :query], find(query, legacy: true)
    assert_equal ["q", :query], find(query.merge("REQUEST_METHOD" => "HEAD"), legacy: true)
    assert_equal ["h", :header], find(query.merge("HTTP_AUTHORIZATION" => "Bearer h"), legacy: true)
    assert_equal ["c", :cookie], find(query.merge("REQUEST_METHOD" => "POST"), legacy: true)
    assert_equal ["c", :cookie], find(query, legacy: :no_query)
    assert_equal ["a.b", :query], find({"QUERY_STRING" => "%61uthorization=a%2Eb"}, legacy: true)
    assert_equal ["%zz", :query], find({"QUERY_STRING" => "&&authorization=%zz&=x"}, legacy: true)
    assert_equal [nil, nil], find({"QUERY_STRING" => "Authorization=a&xauthorization=b"}, legacy: true)
    assert_raises(Hikyaku::Web::Authorization::InvalidRequest) { find({"QUERY_STRING" => "authorization=a&authorization=b"}, legacy: true) }
  end

  test "0.x: the old cookie is used when the new one is absent" do
    [true, :no_query].each do |legacy|
      assert_equal ["a", :cookie], find({"HTTP_COOKIE" => "mercureAuthorization=a"}, legacy: legacy)
      assert_equal ["b", :cookie], find({"HTTP_COOKIE" => "mercureAuthorization=a; #{COOKIE}=b"}, legacy: legacy)
    end
  end
end
