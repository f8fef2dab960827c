# frozen_string_literal: true

require "test_helper"
require "rack/body_proxy"
require "rack/conditional_get"
require "rack/etag"
require "rack/head"
require "support/compressing_application"

# Each coding of a representation has a strong entity tag of its own, and a client that comes back with it gets 304. RFC 9110, sections 8.8.3.3 and 13.1.
class CodecRackCompressionEntityTagsTest < Minitest::Test
  TEXT = "{\"name\":\"value\"}," * 200
  JSON = {"content-type" => "application/json"}.freeze

  test "a strong tag is one of the coding, a weak one stays, and what is no tag stays" do
    {'"abc"' => '"abc-gzip"', '""' => '"-gzip"', 'W/"abc"' => 'W/"abc"', "abc" => "abc", '"a"b"' => '"a"b"', "" => ""}.each do |tag, marked|
      assert_equal marked, answering(tag).get["etag"], tag
      assert_equal tag, answering(tag).get(nil)["etag"], tag
    end
    assert_equal %w["abc-zstd" "abc-br" "abc-gzip"], %w[zstd br gzip].map { |name| answering('"abc"').get(name)["etag"] }
  end

  test "a client that comes back with the tag of its coding gets 304, with the tag that it sent" do
    %w[gzip br zstd].each do |name|
      answer = conditional('"abc"').get(name, if_none_match: "\"abc-#{name}\"")
      assert_equal [304, "\"abc-#{name}\"", "Accept-Encoding", ""], [answer.status, answer["etag"], answer["vary"], answer.bytes]
      assert_nil answer["content-encoding"]
    end
  end

  test "a tag of another coding than this client gets is not known, and what has changed is sent" do
    [["br", '"abc-gzip"'], [nil, '"abc-gzip"'], ["gzip;q=0", '"abc-gzip"'], ["gzip", '"abd-gzip"'], ["gzip", '"abc-gzip-gzip"']]
      .each { |accept, tag| assert_equal 200, conditional('"abc"').get(accept, if_none_match: tag).status, tag[0, 20] }
    assert_equal 200, conditional('"abc"').get("gzip", if_none_match: '"abc-gzip"', range: "bytes=0-1").status
    long = "a" * 9_000
    assert_equal 200, conditional("\"#{long}\"").get("gzip", if_none_match: "\"#{long}-gzip\"").status
  end

  test "a weak tag is compared as it is" do
    answer = conditional('W/"abc"').get("gzip", if_none_match: 'W/"abc"')
    assert_equal [304, 'W/"abc"'], [answer.status, answer["etag"]]
  end

  test "a representation that was sent without a coding is still known by its own tag" do
    answer = conditional('"abc"').get("gzip", if_none_match: '"abc"')
    assert_equal [304, '"abc"'], [answer.status, answer["etag"]]
    several = CompressingApplication.new(lint: false) { |env| [env["HTTP_IF_NONE_MATCH"].include?('"abc"') ? 304 : 200, {"etag" => '"abc"'}, []] }
    assert_equal '"abc"', several.get("gzip", if_none_match: '"old-gzip", "abc"')["etag"]
    assert_equal '"abc-gzip"', several.get("gzip", if_none_match: '"old-gzip", "abc-gzip"')["etag"]
  end

  test "the application sees its own tags, and whoever asked it finds those that were sent" do
    seen = []
    application = CompressingApplication.new(lint: false) do |env|
      seen << env.values_at("HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH")
      raise IOError if env["REQUEST_METHOD"] == "POST"
      [200, {"content-type" => "text/plain"}, []]
    end
    middleware = application.instance_variable_get(:@application)
    [["GET", '"a-gzip", W/"b-gzip", "c-br", "gzip", "d"', nil], ["PUT", nil, '"a-gzip", "b-br", "c-zstd", "d"'], ["GET", nil, '"a-gzip"'], ["POST", '"a-gzip"', '"b-gzip"']]
      .each do |method, none, match|
      env = {"REQUEST_METHOD" => method, "HTTP_ACCEPT_ENCODING" => "gzip", "HTTP_IF_NONE_MATCH" => none, "HTTP_IF_MATCH" => match}.compact
      before = env.dup
      begin
        middleware.call(env)
      rescue IOError
        seen << :raised
      end
      assert_equal before, env
    end
    assert_equal [['"a", W/"b", "c-br", "gzip", "d"', nil], [nil, '"a", "b", "c", "d"'], [nil, '"a"'], ['"a"', '"b"'], :raised], seen
  end

  test "who wants a representation of a certain tag gets it with its coding, and of no other tag" do
    application = CompressingApplication.new(lint: false) do |env|
      next [412, {}, []] unless env.fetch("HTTP_IF_MATCH").split(/, */).intersect?(["*", '"abc"'])
      [200, JSON.merge("etag" => '"abc"'), [TEXT]]
    end
    wanted = ->(accept, tag, **fields) { application.get(accept, if_match: tag, **fields).then { |answer| [answer.status, answer["etag"]] } }
    assert_equal [200, '"abc-gzip"'], wanted.call("gzip", '"x", "abc-gzip"')
    assert_equal [200, '"abc-br"'], wanted.call("br", "*")
    assert_equal [412, nil], wanted.call("br", '"abc-gzip"')
    assert_equal [412, nil], wanted.call("gzip", '"abc-gzip"', range: "bytes=0-9")
    assert_equal [412, nil], wanted.call(nil, '"abc-gzip"')
    assert_equal 200, wanted.call("br", '"abc-gzip"', method: "PUT").first
  end

  test "lists, a star, and weak tags are compared as the specification says" do
    inside = Class.new do
      def initialize(app) = @app = app

      def call(env)
        status, headers, body = @app.call(env)
        tags = env["HTTP_IF_NONE_MATCH"].to_s.strip
        (tags == "*" || tags.scan(/"[^"]*"/).include?(headers["etag"].delete_prefix("W/"))) ? [304, headers.slice("etag", "vary"), []] : [status, headers, body]
      end
    end
    {'"abc"' => ["*", ' "x" , "abc-gzip"', 'W/"abc-gzip"', '"abc-br","abc-gzip"', '"abc"'], 'W/"abc"' => ["*", 'W/"abc"', '"abc"']}.each do |tag, known|
      application = CompressingApplication.new(inside: [inside], lint: false) { [200, JSON.merge("etag" => tag), [TEXT]] }
      known.each do |tags|
        answer = application.get(if_none_match: tags)
        assert_equal [304, "", "Accept-Encoding"], [answer.status, answer.bytes, answer["vary"]], tags
      end
      ['"abc-br"', '"ab", "c-gzip"', "abc-gzip", '"-gzip"', ""].each { |tags| assert_equal 200, application.get(if_none_match: tags).status, tags }
    end
  end

  test "a tag of the application's own that ends as ours do is known as well" do
    closed = 0
    [[{"content-encoding" => "gzip"}, '"abc-gzip"', TEXT], [{}, '"abc-gzip"', "small"], [{"content-type" => "image/png"}, '"abc-gzip"', TEXT],
      [{}, 'W/"abc-gzip"', TEXT]].each do |fields, tag, text|
      application = CompressingApplication.new(inside: [Rack::ConditionalGet], lint: false) do
        [200, JSON.merge(fields, "etag" => tag, "content-length" => text.bytesize.to_s, "x-own" => "1"), Rack::BodyProxy.new([text]) { closed += 1 }]
      end
      assert_equal tag, application.get["etag"]
      answer = application.get(if_none_match: tag)
      assert_equal [304, tag, "", "1"], [answer.status, answer["etag"], answer.bytes, answer["x-own"]], fields
      assert_empty answer.headers.keys & %w[content-type content-length content-encoding]
      assert_equal 200, application.get(if_none_match: '"abd-gzip"').status
    end
    assert_equal 12, closed
    careless = CompressingApplication.new(lint: false) { [200, JSON.merge("etag" => '"abc"'), [TEXT]] }
    ['"abc-gzip"', '"abc", "old-gzip"'].each { |tags| assert_equal 200, careless.get(if_none_match: tags).status, "it compares no tags: its affair" }
    posted = CompressingApplication.new(lint: false) { [200, JSON.merge("etag" => '"abc-gzip"'), ["small"]] }
    assert_equal 200, posted.get(method: "POST", if_none_match: '"abc-gzip"').status
  end

  test "the middleware may stand inside of what compares tags, too" do
    application = CompressingApplication.new(lint: false) { [200, JSON.merge("etag" => '"abc"'), [TEXT]] }
    outside = Rack::ConditionalGet.new(application.instance_variable_get(:@application))
    env = Rack::MockRequest.env_for("/")
    status, = outside.call(env.merge("HTTP_ACCEPT_ENCODING" => "gzip", "HTTP_IF_NONE_MATCH" => '"abc-gzip"'))
    assert_equal 304, status
    status, = outside.call(env.merge("HTTP_ACCEPT_ENCODING" => "br", "HTTP_IF_NONE_MATCH" => '"abc-gzip"'))
    assert_equal 200, status
  end

  test "tags that Rack::ETag makes are weak, and lead to 304 with every coding" do
    application = CompressingApplication.new(inside: [Rack::ConditionalGet, Rack::ETag]) { [200, JSON.dup, [TEXT]] }
    tag = application.get["etag"]
    assert_match(/\AW\//, tag)
    ["gzip", "br", nil].each { |accept| assert_equal 304, application.get(accept, if_none_match: tag).status }
  end

  test "where its length is known HEAD has the fields that GET has, and no body, and the application's is closed once" do
    length = {"content-length" => TEXT.bytesize.to_s}
    [{"etag" => '"abc"', **length}, {"etag" => 'W/"abc"', **length}, {"content-length" => "3"}, {"vary" => "Accept", **length}].each do |fields|
      [nil, "gzip", "zstd"].each do |accept|
        bodies = []
        application = CompressingApplication.new(lint: false) do |env|
          bodies << ((env["REQUEST_METHOD"] == "HEAD") ? CompressingApplication::Body.new : CompressingApplication::Body.new(TEXT))
          [200, JSON.merge(fields), bodies.last]
        end
        get, head = application.get(accept), application.get(accept, method: "HEAD")
        assert_equal get.headers, head.headers
        assert_equal [200, "", 1], [head.status, head.bytes, bodies.last.closed]
      end
    end
  end

  test "where nothing says how long the body would be, HEAD has the application's own fields, whatever GET has, and no length" do
    ["small", TEXT].each do |text|
      application = CompressingApplication.new(inside: [Rack::Head]) { [200, JSON.merge("etag" => '"abc"'), [text]] }
      _, headers, body = application.middleware.call(Rack::MockRequest.env_for("/", :method => "HEAD", "HTTP_ACCEPT_ENCODING" => "gzip"))
      assert_equal [{**JSON, "etag" => '"abc"', "vary" => "Accept-Encoding"}, false], [headers, body.respond_to?(:to_ary)]
      answer = application.get(method: "HEAD")
      assert_equal [200, "", nil, "Accept-Encoding"], [answer.status, answer.bytes, answer["content-length"], answer["vary"]]
    end
    conditional = CompressingApplication.new(inside: [Rack::Head, Rack::ConditionalGet]) { [200, JSON.merge("etag" => '"abc"'), [TEXT]] }
    assert_equal [304, '"abc-gzip"'], conditional.get(method: "HEAD", if_none_match: '"abc-gzip"').then { |answer| [answer.status, answer["etag"]] }
  end

  test "HEAD passes Rack::Lint, and an application that sends its body all the same is not believed" do
    fields = {**JSON, "etag" => '"abc"', "content-length" => TEXT.bytesize.to_s}
    stripped = CompressingApplication.new(inside: [Rack::Head]) { |env| [200, fields.dup, (env["REQUEST_METHOD"] == "HEAD") ? [] : [TEXT]] }
    assert_equal ["gzip", '"abc-gzip"', nil], stripped.get(method: "HEAD").headers.values_at("content-encoding", "etag", "content-length")
    careless = CompressingApplication.new(lint: false) { [200, JSON.dup, [TEXT]] }
    assert_equal ["gzip", ""], careless.get(method: "HEAD").then { |answer| [answer["content-encoding"], answer.bytes] }
    small = CompressingApplication.new(lint: false) { [200, JSON.dup, ["small"]] }
    assert_nil small.get(method: "HEAD")["content-encoding"]
  end

  private

  def answering(tag) = CompressingApplication.new { [200, JSON.merge("etag" => tag), [TEXT]] }

  def conditional(tag) = CompressingApplication.new(inside: [Rack::ConditionalGet]) { [200, JSON.merge("etag" => tag), [TEXT]] }
end
