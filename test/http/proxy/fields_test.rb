# frozen_string_literal: true

require "test_helper"
require "http/proxy/proxied"
require "hikyaku/http/proxy/fields"

# Which fields of a browser's go on, and what becomes of an answer that depended on others.
class HTTPProxyFieldsTest < Minitest::Test
  include Proxied

  Fields = Hikyaku::HTTP::Proxy::Fields
  SAID = [["accept", "image/*"], ["user-agent", "test"], ["cookie", "a=b"], ["accept-encoding", "gzip"]].freeze
  SLIM = [["cookie", "a=b"]].freeze
  FIELDS = ["Accept: image/*", "User-Agent: test", "Cookie: a=b", "Accept-Language: de"].freeze
  private_constant :Fields, :SAID, :SLIM, :FIELDS

  def setup
    @memory = Hikyaku::HTTP::Client::Memory.new(nil)
    @fields = Fields.new(@memory)
  end

  test "the first of each kind carries everything, the others at once what matters, documents all" do
    assert_equal [SAID, SLIM, SLIM], Array.new(3) { @fields.for("http://a", :image, SAID) }
    assert_equal [SAID, SLIM + SAID.last(1)], Array.new(2) { @fields.for("http://a", :style, SAID) }
    assert_equal SAID, @fields.for("http://b", :image, SAID)
    assert_equal [SAID] * 3, Array.new(3) { @fields.for("http://a", :document, SAID) }
    assert_equal [SAID] * 2, Fields.new(@memory, all: true).then { |all| Array.new(2) { all.for("http://c", :image, SAID) } }
  end

  test "what answers depend on is said from then on, also by who begins later" do
    @fields.for("http://a", :image, SAID)
    @fields.answered("http://a", :image, "Accept, Accept-Encoding")
    [@fields, Fields.new(@memory)].each { |fields| assert_equal SAID - [["user-agent", "test"]], fields.for("http://a", :image, SAID) }
    @fields.answered("http://a", :image, "*")
    assert_equal SAID, @fields.for("http://a", :image, SAID)
    @fields.for("http://b", :image, SAID)
    @fields.refused("http://b", :image)
    assert_equal SAID, @fields.for("http://b", :image, SAID)
  end

  test "of too many names none is left out" do
    @fields.for("http://a", :image, SAID)
    @fields.answered("http://a", :image, (1..25).map { |i| "X-#{i}" }.join(","))
    assert_equal SAID, @fields.for("http://a", :image, SAID)
  end

  test "an answer has missed what it names and was left out" do
    {nil => false, "" => false, "Cookie" => false, "Accept-Language" => false, "Accept" => true, "cookie , ACCEPT" => true, "*" => true}.each do |vary, missed|
      assert_equal missed, Fields.missed?(vary, SAID, SLIM), vary.inspect
      refute Fields.missed?(vary, SAID, SAID), vary.inspect
    end
  end

  test "a server whose answer depends on what was left out is asked again with that" do
    way = Misbehaving::AsTold.new { |request, _| in_language(request, ("Accept-Language" unless request.path == "/1.png")) }
    Misbehaving.run(way) do |server|
      run_proxy do |proxy|
        bodies = %w[/1.png /2.png /3.png].map { |path| get(proxy, server, path, *FIELDS).last }
        assert_equal ['/1.png in "de"', '/2.png in "de"', '/3.png in "de"'], bodies
        assert_equal [%w[/1.png de], ["/2.png", nil], %w[/2.png de], %w[/3.png de]], asked(server)
        assert_equal ["test", nil, nil, nil], server.log.map { |entry| entry.last["user-agent"] }
      end
    end
  end

  test "it is learned from answers of every status, and asked again once, whatever comes" do
    {304 => nil, 302 => "", 404 => "", 200 => "x"}.each do |status, body|
      count = 0
      answer = lambda do |bytes|
        next unless bytes.end_with?("\r\n\r\n")
        count += 1
        length = body && "Content-Length: #{body.bytesize}\r\n"
        "HTTP/1.1 #{status} X\r\nETag: \"a\"\r\nVary: #{(count == 1) ? "Cookie" : "Accept-Language, X-#{count}"}\r\n#{length}\r\n#{body}"
      end
      with_origin(answer) do |origin, proxy|
        extra = (2..4).map { |i| "X-#{i}: y" }
        assert_equal [status] * 3, %w[/1.png /2.png /3.png].map { |path| get(proxy, origin, path, *FIELDS, *extra, 'If-None-Match: "a"').first }
        # The third depends on what none before it named.
        assert_equal [1, 2, (status == 404) ? 1 : 2], %w[/1.png /2.png /3.png].map { |path| origin.received.join.scan("GET #{path} ").size }
      end
    end
  end

  test "a server that names ever other fields is asked for each thing twice at most" do
    with_origin(->(bytes) { "HTTP/1.1 302 Found\r\nLocation: /\r\nVary: X-#{bytes.scan("GET ").size}\r\nContent-Length: 0\r\n\r\n" if bytes.end_with?("\r\n\r\n") }) do |origin, proxy|
      5.times { |i| assert_equal 302, get(proxy, origin, "/#{i}.png", "Accept: image/*", *(1..20).map { |n| "X-#{n}: y" }).first }
      assert_operator origin.received.join.scan("GET ").size, :<=, 9
    end
  end

  test "what was fetched ahead without a field on which it depends is asked for again with that" do
    page = "<img src=/1.png><img src=/2.png>"
    way = Misbehaving::AsTold.new do |request, _|
      next "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: #{page.bytesize}\r\n\r\n#{page}" if request.path == "/page.html"
      in_language(request, "Accept-Language")
    end
    Misbehaving.run(way) do |server|
      run_proxy do |proxy|
        get(proxy, server, "/page.html", "Accept: text/html", "Accept-Language: de")
        wait_until { server.log.size == 3 }
        bodies = %w[/1.png /2.png].map { |path| get(proxy, server, path, "Accept: image/*", "Accept-Language: de").last }
        assert_equal ['/1.png in "de"', '/2.png in "de"'], bodies
        assert_equal [%w[/1.png de], ["/2.png", nil], %w[/2.png de]], asked(server).drop(1)
      end
    end
  end

  private

  def in_language(request, vary)
    body = "#{request.path} in #{request.headers["accept-language"].inspect}"
    Misbehaving::Answer.to(request).with("Vary" => vary, "ETag" => nil, "Content-Length" => body.bytesize).tap { |answer| answer.body = body }
  end

  def asked(server) = server.log.map { |entry| [entry[2], entry.last["accept-language"]] }
end
