# frozen_string_literal: true

require "test_helper"
require "http/cookie_jar"
require "hikyaku/http/client"
require "support/misbehaving"

# Cookies: none, unless there is a jar.
class HTTPClientCookiesTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  private_constant :Client

  # Sets what a request's query says, one cookie for each of its parts, and redirects where a path says so.
  class Baker < Misbehaving::WellBehaved
    def misbehave(connection, request)
      path, query = request.target.split("?", 2)
      fields = query.to_s.split("&").map { |cookie| "Set-Cookie: #{cookie}\r\n" }.join
      location = path.start_with?("/to/") ? "Location: http://#{path.delete_prefix("/to/")}\r\n" : ""
      connection.write("HTTP/1.1 #{location.empty? ? "200 OK" : "302 Found"}\r\n#{fields}#{location}Cache-Control: max-age=60\r\nContent-Length: 0\r\n\r\n")
    end
  end
  private_constant :Baker

  test "without a jar no cookie is kept, and the answer shows them" do
    serve do |server, client|
      assert_equal %w[a=1 b=2], client.get(server.url("/?a=1&b=2")).values("set-cookie")
      client.get(server.url("/next"))
      assert_equal [nil, nil], cookies(server)
    end
  end

  test "with a jar they are kept, and sent where they belong" do
    jar = HTTP::CookieJar.new
    serve(cookies: jar) do |server, client|
      client.get(server.url("/?a=1&b=2;Path=/x"))
      client.get(server.url("/y"))
      client.get(server.url("/x/y"))
      client.get(server.url("/y").sub("127.0.0.1", "localhost"))
      assert_equal [nil, "a=1", "a=1; b=2", nil], cookies(server).map { |value| value&.split("; ")&.sort&.join("; ") }
      assert_equal %w[a b], jar.cookies(URI(server.url("/x"))).map(&:name).sort
    end
  end

  test "a cookie that is taken back is sent no more, and one of others or of https never" do
    serve(cookies: HTTP::CookieJar.new) do |server, client|
      client.get(server.url("/?a=1&b=1;Domain=other.example&c=1;Secure&d=1"))
      client.get(server.url("/?a=;Max-Age=0"))
      client.get(server.url("/next"))
      assert_equal [nil, "a=1; d=1", "d=1"], cookies(server)
    end
  end

  test "what a caller says in Cookie stands in place of the jar's" do
    serve(cookies: HTTP::CookieJar.new) do |server, client|
      client.get(server.url("/?a=1"))
      client.get(server.url("/next"), headers: {"Cookie" => "own=1"})
      assert_equal "own=1", cookies(server).last
    end
  end

  test "a redirect's cookies are kept, and another server is not told them" do
    Misbehaving.run(Baker.new) do |other|
      serve(cookies: HTTP::CookieJar.new) do |server, client|
        client.get(server.url("/to/#{other.url.delete_prefix("http://").sub("127.0.0.1", "localhost").chomp("/")}/there?a=1;Path=/"))
        client.get(server.url("/back"))
        assert_equal [nil, "a=1"], cookies(server)
        assert_equal [nil], cookies(other)
      end
    end
  end

  test "an answer from the cache sets no cookie again, neither in the jar nor for the caller" do
    jar = HTTP::CookieJar.new
    serve(cookies: jar, cache: true) do |server, client|
      assert_equal ["a=1"], client.get(server.url("/?a=1")).values("set-cookie")
      jar.clear
      again = client.get(server.url("/?a=1"))
      assert_predicate again, :cached?
      assert_empty again.values("set-cookie")
      assert_empty jar.to_a
    end
  end

  private

  def serve(**options)
    Misbehaving.run(Baker.new) { |server| yield server, Client.new(memory: nil, proxy: nil, cache: false, **options) }
  end

  def cookies(server) = server.log.map { |entry| entry.last["cookie"] }
end
