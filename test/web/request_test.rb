# frozen_string_literal: true

require "test_helper"
require "hikyaku/config"
require "hikyaku/web"

class WebRequestTest < Minitest::Test
  Problem = Hikyaku::Web::Problem

  def request(query, max_fields: 3, path: "/a", **env)
    Hikyaku::Web::Request.new({"QUERY_STRING" => query, "PATH_INFO" => path}.merge(env.transform_keys(&:to_s)), max_fields: max_fields)
  end

  test "a query component has at most so many fields, empty ones included" do
    ["", "a", "a=b&c=d&e", "&&", "===", "a;b;c;d"].each { |query| assert_nil request(query).check!, query }
    ["a&b&c&d", "&&&", "a&&&"].each do |query|
      problem = assert_raises(Problem, query) { request(query).check! }
      assert_equal [400, "the query component has more than 3 fields"], [problem.status, problem.message]
      assert_nil request(query, max_fields: nil).check!
    end
  end

  test "a query component is refused before it is parsed, whatever it is for" do
    web = Hikyaku::Web.new(Hikyaku::Config.new(anonymous: true, subscriptions: true, dev: true, engine: "ruby"))
    ["", "/subscriptions", "/subscribers/a", "/streams/a", "/ui/", "/ui/token", "/nothing"].product(%w[GET HEAD QUERY POST DELETE OPTIONS]).each do |path, method|
      status, headers, = web.call("REQUEST_METHOD" => method, "SCRIPT_NAME" => "", "PATH_INFO" => "/.well-known/mercure#{path}", "QUERY_STRING" => "match=a&" * 20_000)
      assert_equal [400, "application/problem+json"], [status, headers["content-type"]], "#{method} #{path}"
    end
  end

  test "a path holds no percent sign but those of escapes" do
    ["%zz", "/%", "/%4", "/a%4G", "/%%41"].each { |path| assert_equal 400, assert_raises(Problem, path) { request("", path: path).check! }.status }
    ["/%41", "/%zz".sub("zz", "fF"), "/%FF", "/%25zz"].each { |path| assert_nil request("", path: path).check!, path }
  end
end
