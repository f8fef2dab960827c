# frozen_string_literal: true

require "test_helper"
require "http/proxy/proxied"
require "hikyaku/http/proxy/header_filter"

# Which fields of a browser's go on, and what becomes of an answer that depended on others.
class HTTPProxyHeaderFilterTest < Minitest::Test
  include Proxied

  HeaderFilter = Hikyaku::HTTP::Proxy::HeaderFilter
  IMAGE = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
  STYLE = "text/css,*/*;q=0.1"
  SAID = [["accept", IMAGE], ["user-agent", "test"], ["cookie", "a=b"], ["accept-encoding", "gzip"]].freeze
  STYLED = [["accept", STYLE], *SAID.drop(1)].freeze
  SLIM = [["cookie", "a=b"]].freeze
  FIELDS = ["Accept: #{IMAGE}", "User-Agent: test", "Cookie: a=b", "Accept-Language: de"].freeze
  NAMES = ([nil] * 2 + %w[Referer DNT Sec-GPC Priority Sec-CH-UA Sec-CH-UA-Mobile Sec-CH-UA-Platform User-Agent Sec-Fetch-Mode]).freeze
  private_constant :NAMES, :HeaderFilter, :IMAGE, :STYLE, :SAID, :STYLED, :SLIM, :FIELDS

  def setup
    @memory = Hikyaku::HTTP::Client::Memory.new(nil)
    @filter = HeaderFilter.new(@memory)
  end

  test "the first of each kind carries everything, the others at once what matters, documents and all else always everything" do
    assert_equal [SAID, SLIM, SLIM], Array.new(3) { @filter.call("http://a", :image, SAID) }
    assert_equal [STYLED, SLIM + SAID.last(1)], Array.new(2) { @filter.call("http://a", :style, STYLED) }
    assert_equal SAID, @filter.call("http://b", :image, SAID)
    %i[document other].each { |kind| assert_equal [SAID] * 3, Array.new(3) { @filter.call("http://a", kind, SAID) } }
    assert_equal [SAID] * 2, HeaderFilter.new(@memory, all: true).then { |all| Array.new(2) { all.call("http://c", :image, SAID) } }
  end

  test "only what is named is left out, and nothing of what has a field, or an Accept, that no browser says by itself" do
    2.times { @filter.call("http://a", :image, SAID) }
    kept = [["range", "bytes=0-1"], ["authorization", "Basic x"], ["if-none-match", '"a"'], ["save-data", "on"], ["cache-control", "no-cache"], ["via", "1.1 a"]]
    left = %w[referer accept-language sec-fetch-dest sec-ch-ua dnt].map { |name| [name, "x"] }
    assert_equal SLIM + kept, @filter.call("http://a", :image, SAID + kept + left)
    %w[origin x-requested-with hx-request x-api-key sec-ch-dpr sec-purpose forwarded].each do |name|
      assert_equal SAID + [[name, "x"]], @filter.call("http://a", :image, SAID + [[name, "x"]]), name
    end
    [[:image, "image/png"], [:image, "application/json"], [:image, "*/*"], [:style, "text/css"], [:script, "application/json"], [:script, "*/*, a/b"], [:font, "a/b"]].each do |kind, accept|
      said = [["accept", accept], *SAID.drop(1)]
      3.times { assert_equal said, @filter.call("http://a", kind, said), accept }
    end
  end

  test "what answers depend on is said from then on, also by who begins later" do
    @filter.call("http://a", :image, SAID)
    learn("Accept, Accept-Encoding")
    [@filter, HeaderFilter.new(@memory)].each { |filter| assert_equal SAID - [["user-agent", "test"]], filter.call("http://a", :image, SAID) }
    learn("*")
    assert_equal SAID, @filter.call("http://a", :image, SAID)
    @filter.call("http://b", :image, SAID)
    @filter.send_all("http://b", :image)
    assert_equal SAID, @filter.call("http://b", :image, SAID)
  end

  test "of too many names none is left out" do
    @filter.call("http://a", :image, SAID)
    learn((1..25).map { |i| "x-#{i}" }.join(", "))
    assert_equal SAID, @filter.call("http://a", :image, SAID)
  end

  test "an answer has missed what it names and was left out, and anything where it is not one that others may be given" do
    {nil => false, "" => false, "Cookie" => false, "Accept-Language" => false, "Accept" => true, "cookie , ACCEPT" => true, "*" => true}.each do |vary, missed|
      assert_missed(missed, {"cache-control" => "max-age=9", "vary" => vary})
    end
    {"cache-control" => "s-maxage=9, public", "expires" => "0", "etag" => '"a"', "last-modified" => "x"}.each { |name, value| assert_missed(false, {name => value}) }
    [{}, {"cache-control" => "public"}, {"etag" => '"a"', "cache-control" => "private"}, {"cache-control" => "max-age=9, NO-STORE"}].each do |headers|
      assert_missed(true, headers)
      assert_missed(false, headers, kind: :image)
    end
    assert_missed(false, {}, status: 304)
    assert_equal [false, false, true, true, false, true, true], [200, 206, 302, 307, 304, 404, 500].map { |status| HeaderFilter.refused?(status) }
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

  test "a server whose answer depends on codings in name only is not asked again" do
    {nil => 2, "gzip" => 3}.each do |coding, count|
      way = Misbehaving::AsTold.new { |request, _| Misbehaving::Answer.to(request).with("Vary" => ("Accept-Encoding" unless request.path == "/1.png"), "Content-Encoding" => coding) }
      Misbehaving.run(way) do |server|
        run_proxy do |proxy|
          %w[/1.png /2.png].each { |path| get(proxy, server, path, *FIELDS, "Accept-Encoding: gzip") }
          assert_equal count, server.log.size, coding
        end
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
        "HTTP/1.1 #{status} X\r\nETag: \"a\"\r\nVary: #{(count == 1) ? "Cookie" : "Accept-Language, #{NAMES[count]}"}\r\n#{length}\r\n#{body}"
      end
      with_origin(answer) do |origin, proxy|
        extra = NAMES.compact.map { |name| "#{name}: y" }
        assert_equal [status] * 3, %w[/1.png /2.png /3.png].map { |path| get(proxy, origin, path, *FIELDS, *extra, 'If-None-Match: "a"').first }
        # The third depends on what none before it named.
        assert_equal [1, 2, [302, 404].include?(status) ? 1 : 2], %w[/1.png /2.png /3.png].map { |path| origin.received.join.scan("GET #{path} ").size }
      end
    end
  end

  test "a server that names ever other fields is asked for each thing twice at most" do
    with_origin(->(bytes) { "HTTP/1.1 200 OK\r\nETag: 1\r\nVary: #{NAMES[1 + bytes.scan("GET ").size]}\r\nContent-Length: 0\r\n\r\n" if bytes.end_with?("\r\n\r\n") }) do |origin, proxy|
      5.times { |i| assert_equal 200, get(proxy, origin, "/#{i}.png", "Accept: #{IMAGE}", *NAMES.compact.map { |name| "#{name}: y" }).first }
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
        bodies = %w[/1.png /2.png].map { |path| get(proxy, server, path, "Accept: #{IMAGE}", "Accept-Language: de").last }
        assert_equal ['/1.png in "de"', '/2.png in "de"'], bodies
        assert_equal [%w[/1.png de], ["/2.png", nil], %w[/2.png de]], asked(server).drop(1)
      end
    end
  end

  test "what depends on codings in name only is asked for once, in a page and by itself, and learned where something may be encoded" do
    {["Accept-Encoding", "image/png"] => [], ["Accept-Encoding", "image/svg+xml"] => %w[accept-encoding], ["Origin", "image/svg+xml"] => [], ["Accept-Encoding", nil] => %w[accept-encoding],
     ["accept-encoding, Origin, Save-Data", "image/jpeg;q"] => [], ["Accept-Encoding", "text/html"] => %w[accept-encoding]}.each do |(vary, type), said_then|
      site(vary, Array.new(12) { |i| "/#{i}.png" }, type) do |server, proxy, targets|
        said = ["Accept: #{IMAGE}", "Accept-Encoding: gzip, deflate", "User-Agent: test"]
        targets.each { |target| assert_equal Misbehaving.body_of(target), get(proxy, server, target, *said).last }
        get(proxy, server, "/more.png", *said)
        assert_equal [*targets, "/more.png"].sort, server.log.drop(1).map { |entry| entry[2] }.sort, vary
        assert_equal said_then, server.log.last.last.keys & %w[accept accept-encoding user-agent], "#{vary} #{type}"
      end
    end
  end

  test "what depends on what was left out is known with the first answer, and what no server was asked for yet says it" do
    {"Accept" => IMAGE, "User-Agent" => "test", "Accept-Encoding, Accept-Language" => "de"}.each do |vary, value|
      site(vary, Array.new(40) { |i| "/#{i}.png" }) do |server, proxy, targets|
        said = ["Accept: #{IMAGE}", "Accept-Encoding: gzip", "User-Agent: test", "Accept-Language: de"]
        bodies = targets.map { |target| get(proxy, server, target, *said).last }
        assert_equal targets.map { |target| Misbehaving.body_of(target) }, bodies
        # The first says everything. Those that were on their way before it was answered are asked for once more.
        in_vain = server.log.count { |entry| entry[2].end_with?(".png") && entry.last[vary[/[\w-]+\z/].downcase].nil? }
        assert_operator in_vain, :<, 20, vary
        assert_equal targets.size + in_vain, server.log.size - 1, vary
        assert_equal value, server.log.last.last[vary[/[\w-]+\z/].downcase], vary
      end
    end
  end

  test "what varies by anything is not prefetched any more, until a response of the kind does not" do
    site("*", Array.new(40) { |i| "/#{i}.png" }) do |server, proxy, targets|
      get(proxy, server, "/page.html", "Accept: text/html")
      targets.each { |target| assert_equal Misbehaving.body_of(target), get(proxy, server, target, "Accept: #{IMAGE}", "User-Agent: test").last }
      in_vain = server.log.count { |entry| entry[2].end_with?(".png") } - targets.size
      assert_operator in_vain, :<, 20
      before = server.log.size
      get(proxy, server, "/page.html", "Accept: text/html")
      wait_until { proxy.user_state.prefetcher.size.zero? }
      assert_equal before + 1, server.log.size
      @vary = nil
      get(proxy, server, "/other.png", "Accept: #{IMAGE}", "User-Agent: test")
      get(proxy, server, "/page.html", "Accept: text/html")
      wait_until { server.log.size == before + 3 + targets.size }
    end
  end

  test "what is for this browser alone, or leads elsewhere, is asked for with everything, and so is what comes after it" do
    {"200 OK" => "Cache-Control: private", "302 Found" => "Location: /no"}.each do |status, field|
      with_origin(lambda { |bytes|
        next unless bytes.end_with?("\r\n\r\n")
        all = bytes.rpartition("GET ").last.match?(/^user-agent/i)
        "HTTP/1.1 #{(bytes.scan("GET ").size == 1 || all) ? "200 OK\r\nETag: 1" : "#{status}\r\n#{field}"}\r\nContent-Length: 0\r\n\r\n"
      }) do |origin, proxy|
        3.times { |i| assert_equal 200, get(proxy, origin, "/#{i}.css", "Accept: #{STYLE}", *FIELDS.drop(1)).first, status }
        assert_equal [1, 2, 1], %w[/0.css /1.css /2.css].map { |path| origin.received.join.scan("GET #{path} ").size }, status
      end
    end
  end

  test "what a page's script adds goes on with each request, and what was fetched ahead without it is not given" do
    page = "<img src=/1.png><img src=/2.png><script src=/1.js></script>"
    way = Misbehaving::AsTold.new do |request, _|
      next "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: #{page.bytesize}\r\n\r\n#{page}" if request.path == "/page.html"
      body = %w[origin x-api-key accept].map { |name| request.headers[name] }.join(" ")
      Misbehaving::Answer.to(request).with("Content-Length" => body.bytesize, "ETag" => nil, "Last-Modified" => nil, "Cache-Control" => nil, "Expires" => "0").tap { |answer| answer.body = body }
    end
    Misbehaving.run(way) do |server|
      run_proxy do |proxy|
        get(proxy, server, "/page.html", "Accept: text/html")
        wait_until { server.log.size == 4 }
        %w[/1.png /2.png /1.js /3.js /4.js /a /b].each do |path|
          assert_equal "http://a k text/plain", get(proxy, server, path, "Accept: text/plain", "Origin: http://a", "X-Api-Key: k").last, path
          assert_equal "http://a  */*", get(proxy, server, path, "Accept: */*", "Origin: http://a").last, path
          assert_equal "  a/b", get(proxy, server, path, "Accept: a/b").last, path
        end
      end
    end
  end

  private

  # A page with images, of which the first is answered when all are kept, at a server of which nothing is known.
  def site(vary, targets, type = "image/png")
    @vary = vary
    page = targets.map { |target| "<img src=#{target}>" }.join
    held = Queue.new
    way = Misbehaving::AsTold.new do |request, _|
      next "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: #{page.bytesize}\r\n\r\n#{page}" if request.path == "/page.html"
      held.pop
      Misbehaving::Answer.to(request).with("Vary" => @vary, "Content-Type" => type)
    end
    Misbehaving.run(way) do |server|
      run_proxy do |proxy|
        get(proxy, server, "/page.html", "Accept: text/html", "Accept-Encoding: gzip, deflate", "User-Agent: test", "Accept-Language: de")
        wait_until { proxy.user_state.prefetcher.size == targets.size }
        held.close
        yield server, proxy, targets
      end
    end
  end

  def learn(vary)
    @filter.learn("http://a", :image, Hikyaku::HTTP::Response.new(status: 200, headers: [["vary", vary]], body: "", url: "http://a/"))
  end

  def assert_missed(missed, headers, status: 200, kind: :script)
    answer = Hikyaku::HTTP::Response.new(status: status, headers: headers.compact.to_a, body: "", url: "http://a/")
    needed = HeaderFilter.vary(answer, kind)
    assert_equal missed, HeaderFilter.omitted?(needed, SAID, SLIM), headers.inspect
    refute HeaderFilter.omitted?(needed, SAID, SAID), headers.inspect
  end

  def in_language(request, vary)
    body = "#{request.path} in #{request.headers["accept-language"].inspect}"
    Misbehaving::Answer.to(request).with("Vary" => vary, "ETag" => nil, "Cache-Control" => "max-age=9", "Content-Length" => body.bytesize).tap { |answer| answer.body = body }
  end

  def asked(server) = server.log.map { |entry| [entry[2], entry.last["accept-language"]] }
end
