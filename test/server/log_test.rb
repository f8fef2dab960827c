# frozen_string_literal: true

require "test_helper"
require "hikyaku/server/log"
require "json"
require "stringio"

class ServerLogTest < Minitest::Test
  def line(message, **options)
    io = StringIO.new
    Hikyaku::Server::Log.new(io, **options).info(message)
    io.string
  end

  test "a line of text has the time, the level and the message" do
    assert_match(/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO  hello\n\z/, line("hello"))
  end

  test "a line of JSON has the same" do
    document = JSON.parse(line("say \"hi\"", format: "json"))
    assert_equal ["info", "say \"hi\""], document.values_at("level", "message")
  end

  test "what looks like a token is hidden" do
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
    ["token #{token} refused", "GET /hub?authorization=#{token}&x", "Authorization: Bearer #{token}", "authorization=s3cret.x.y&topic", "bearer s3cret",
      "access_token=s3cret"].each do |message|
      %w[text json].each do |format|
        refute_match(/c2lnb|eyJ|s3cret/, line(message, format: format), message)
        assert_includes line(message, format: format), "[hidden]"
      end
    end
  end

  test "nobody can add a line or command a terminal" do
    message = "a\nb\r\e[31m\u202Ec\u0000"
    assert_equal 1, line(message).count("\n")
    assert_includes line(message), 'a\u000ab\u000d\u001b[31m\u202ec\u0000'
    assert_equal 1, line(message, format: "json").count("\n")
  end

  test "bytes that are no UTF-8 and errors are written" do
    assert_includes line("a\xFFb"), "a?b"
    assert JSON.parse(line("a\xFFb".b, format: "json"))
    assert_includes line(ArgumentError.new("no")), "ArgumentError: no"
  end

  test "the level decides what is written" do
    assert_empty line("x", level: "warn")
    assert_empty line("x", level: "error")
    refute_empty line("x", level: "debug")
  end
end
