# frozen_string_literal: true

require "test_helper"
require "hikyaku/server/native"

class NativeResponseTest < Minitest::Test
  def response(status = 200, headers = {}, method: "GET", protocol: "HTTP/1.1", keep_alive: true)
    Hikyaku::Server::Native::Response.new({"REQUEST_METHOD" => method, "SERVER_PROTOCOL" => protocol}, status, headers, keep_alive: keep_alive)
  end

  test "an answer says how long it is and in what order its headers came" do
    head, content = response(200, {"content-type" => "text/plain", "vary" => "origin"}).whole(["ab", "é"])
    assert_equal "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nvary: origin\r\ncontent-length: 4\r\n\r\n", head
    assert_equal "abé".b, content
  end

  test "the answer to HEAD has the length of the content and not the content (RFC 9110, 9.3.2)" do
    head, content = response(method: "HEAD").whole(["abc"])
    assert_match(/content-length: 3\r\n/, head)
    assert_empty content
    head, = response(200, {"content-length" => "7"}, method: "HEAD").whole([])
    assert_equal 1, head.scan("content-length").size
    body = Object.new
    def body.each = raise("nobody asked for it")
    refute_includes response(method: "HEAD").whole(body).first, "content-length"
  end

  test "what has no content says no length (RFC 9110, 8.6)" do
    [204, 304].each { |status| refute_includes response(status).whole([]).first, "content-length" }
    assert_match(/content-length: 0/, response(302, {"location" => "/"}).whole([]).first)
  end

  test "the connection's end is said where it is not expected, by version (RFC 9112, 9.3)" do
    [["HTTP/1.1", true, nil], ["HTTP/1.1", false, "close"], ["HTTP/1.0", true, "keep-alive"], ["HTTP/1.0", false, nil]].each do |protocol, keep, expected|
      head, = response(protocol: protocol, keep_alive: keep).whole([])
      assert_equal [expected].compact, head.scan(/connection: (\S+)/).flatten, "#{protocol}, #{keep}"
      assert head.start_with?("#{protocol} 200 OK\r\n")
    end
    closing = response(200, {"connection" => "close"})
    refute closing.keep_alive?
    assert_equal 1, closing.whole([]).first.scan("connection:").size
    assert_equal 1, closing.stream.scan("connection:").size
  end

  test "a header has as many lines as it has values, and none that would end it early" do
    head, = response(200, {"set-cookie" => %w[a=1 b=2], "x" => "1\n2", "y" => 3, "evil" => "a\r\nb: c", "rack.hijack" => "x"}).whole([])
    assert_equal ["set-cookie: a=1", "set-cookie: b=2", "y: 3", "content-length: 0"], head.split("\r\n").drop(1)
  end

  test "a template lacks what differs from one answer to the next" do
    headers = {"content-type" => "text/plain", "mercure-last-event-id" => "a", "last-event-id" => "a", "content-length" => "12"}
    assert_equal "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n", response(200, headers).template
  end
end
