# frozen_string_literal: true

require "test_helper"
require "hikyaku/http"
require "hikyaku/server/relay"
require "stringio"

class RelayRequestTest < Minitest::Test
  HEAD = {"REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/hub", "QUERY_STRING" => "match=a%20b&x", "SERVER_PROTOCOL" => "HTTP/1.1",
          "HTTP_HOST" => "hub.example.com"}.freeze

  def request(limit: 1000, **env) = Hikyaku::Server::Relay::Request.new(HEAD.merge(env.transform_keys(&:to_s)), limit: limit)

  def bytes(address = nil, **env) = request(**env).bytes(address)

  def lines(...) = bytes(...).split("\r\n")

  test "a request becomes the bytes that it was" do
    assert_equal "GET /hub?match=a%20b&x HTTP/1.1\r\nhost: hub.example.com\r\nlast-event-id: #1\r\nconnection: close\r\n\r\n", bytes(HTTP_LAST_EVENT_ID: "#1")
    assert_equal "GET /hub HTTP/1.0", lines(QUERY_STRING: "", SERVER_PROTOCOL: "HTTP/1.0").first
  end

  test "a body goes along, with its type and its length" do
    env = {REQUEST_METHOD: "QUERY", CONTENT_TYPE: "application/x-www-form-urlencoded", CONTENT_LENGTH: "7", "rack.input": StringIO.new("match=é")}
    parser = Hikyaku::HTTP::Parser.new(:request) << bytes(**env)
    head = parser.next
    assert_equal ["QUERY", "8", "application/x-www-form-urlencoded"], [head.method, head["content-length"], head["content-type"]]
    assert_equal ["match=é".b, :end], [parser.next, parser.next]
    assert_equal "12345", request(limit: 5, "rack.input": StringIO.new("123456789")).body
  end

  test "what is of this connection alone does not go along" do
    %w[CONNECTION KEEP_ALIVE PROXY_CONNECTION TE TRAILER TRANSFER_ENCODING UPGRADE EXPECT CONTENT_LENGTH VERSION].each do |name|
      assert_equal 3, lines("HTTP_#{name}": "x").size, name
    end
    assert_equal 3, lines(HTTP_CONNECTION: "x-mine, X-Other", HTTP_X_MINE: "1", HTTP_X_OTHER: "2").size
    assert_equal ["connection: close"], lines(HTTP_CONNECTION: "keep-alive").grep(/connection/)
  end

  test "what is no header of the request does not go along" do
    assert_equal 3, lines("rack.url_scheme": "https", "puma.socket": 1, SERVER_NAME: "x", REMOTE_ADDR: "1", HTTP_: "x", "HTTP_X:Y": "x", "HTTP_X Y": "x", http_x: "x", HTTPS: "on").size
  end

  test "the client's address stands last of those that the request came from" do
    assert_includes lines("192.0.2.1"), "x-forwarded-for: 192.0.2.1"
    assert_equal ["x-forwarded-for: 198.51.100.1, 192.0.2.1"], lines("192.0.2.1", HTTP_X_FORWARDED_FOR: "198.51.100.1").grep(/forwarded/)
    assert_equal ["x-forwarded-for: 198.51.100.1"], lines(HTTP_X_FORWARDED_FOR: "198.51.100.1").grep(/forwarded/)
  end

  UNFIT = {
    REQUEST_METHOD: ["GET /x", "GET\r\n", "", nil, "get", "G" * 40, "GE\tT"],
    PATH_INFO: ["/hub HTTP/1.1\r\nx: y", "/hub\n", "/hub\r", "/a b", "/\0", "*", "", "/\x7f", "/\xff"],
    QUERY_STRING: ["a b", "a\r\nx: y", "a\n", "a\0", "\t"],
    HTTP_X: ["a\r\nx: y", "a\n", "a\rb", "a\0", "\x7f", "a\nb"],
    CONTENT_TYPE: ["a\r\nx: y"],
    HTTP_HOST: ["a\r\nx: y"]
  }.freeze

  test "nothing that a request holds makes another line, or another request" do
    UNFIT.each do |name, values|
      values.each do |value|
        problem = assert_raises(Hikyaku::Web::Problem, "#{name} #{value.inspect}") { bytes(name => value) }
        assert_equal 400, problem.status
      end
    end
    assert_raises(Hikyaku::Web::Problem) { bytes("1\r\nx: y") }
  end

  test "bytes that a URL should have encoded are" do
    assert_equal "GET /%C3%A9?match=%E6%9C%A8%FF HTTP/1.1", lines(PATH_INFO: "/é", QUERY_STRING: "match=木\xff".b).first
  end

  test "whatever bytes a header has, the hub's parser reads as one request" do
    random = Random.new(42)
    500.times do
      env = Array.new(random.rand(5)) { ["HTTP_X_#{random.rand(9)}", random.bytes(random.rand(12))] }.to_h
      text = begin
        request(**env.transform_keys(&:to_sym)).bytes
      rescue Hikyaku::Web::Problem
        next
      end
      parser = Hikyaku::HTTP::Parser.new(:request) << text
      head = parser.next
      assert_equal env.size + 2, head.headers.size, env.inspect
      assert_equal :end, parser.next
      assert_predicate parser, :idle?
    end
  end
end
