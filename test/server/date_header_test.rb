# frozen_string_literal: true

require "test_helper"
require "hikyaku/server/middleware"

class DateHeaderTest < Minitest::Test
  DateHeader = Hikyaku::Server::DateHeader

  def ask(headers) = DateHeader.new(->(_env) { [200, headers.freeze, ["x"]] }).call({})

  test "an answer says when it was given" do
    before = Time.now.to_i
    status, headers, body = ask({"content-type" => "text/plain"})
    assert_equal [200, "text/plain", ["x"]], [status, headers["content-type"], body]
    assert_match(/\A\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\z/, headers["date"])
    assert_includes before..Time.now.to_i, Time.httpdate(headers["date"]).to_i
  end

  test "what the application says of it stays" do
    said = {"date" => "yesterday", "x-content-type-options" => "maybe"}
    assert_equal said, ask(said)[1]
    assert_equal "yesterday", ask({"date" => "yesterday"})[1]["date"]
  end

  test "an answer says that its type is not to be guessed" do
    [{}, {"date" => "yesterday"}].each { |headers| assert_equal "nosniff", ask(headers)[1]["x-content-type-options"] }
  end

  test "another second has another date" do
    first = DateHeader.now
    assert_equal first, DateHeader.now if Time.now.httpdate == first
    sleep 1.01
    refute_equal first, DateHeader.now
  end
end
