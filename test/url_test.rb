# frozen_string_literal: true

require "open3"
require "rbconfig"
require_relative "test_helper"
require "hikyaku/support/url"

class UrlTest < Minitest::Test
  URL = Hikyaku::URL
  HUB = "https://hub.example.com/.well-known/mercure"

  # Reference, base, and the URL written with all its parts; nil: none.
  CASES = [
    ["https://example.com", nil, "https://example.com/"],
    ["HTTPS://EXAMPLE.COM:443/A", nil, "https://example.com/A"],
    ["http://example.com:0080/", nil, "http://example.com/"],
    ["http://example.com:000/", nil, "http://example.com:0/"],
    ["http://example.com:65535/", nil, "http://example.com:65535/"],
    ["http://example.com:65536/", nil, nil],
    ["http://example.com:8a/", nil, nil],
    ["http://example.com:/", nil, "http://example.com/"],
    ["https://", nil, nil], ["https:///a", nil, "https://a/"], ["https:a", nil, "https://a/"], ["https:\\\\a\\b", nil, "https://a/b"],
    ["http://a b/", nil, nil], ["http://a<b/", nil, nil], ["http://a%00b/", nil, nil], ["http://%61.com/", nil, "http://a.com/"],
    ["http://u@h/", nil, "http://u@h/"], ["http://:p@h/", nil, "http://:p@h/"], ["http://u:p:q@h/", nil, "http://u:p%3Aq@h/"],
    ["http://a@b@h/", nil, "http://a%40b@h/"], ["http://u@/", nil, nil], ["http://@h/", nil, "http://h/"],
    # An IPv4 address in any of its spellings; what only looks like one is an error.
    ["http://0x7f.1/", nil, "http://127.0.0.1/"], ["http://017700000001/", nil, "http://127.0.0.1/"], ["http://1.2.3.4./", nil, "http://1.2.3.4/"],
    ["http://1.2.3.4.5/", nil, nil], ["http://256.1.1.1/", nil, nil], ["http://1.2.3.09/", nil, nil], ["http://1_0.1/", nil, nil],
    ["http://0x.0/", nil, "http://0.0.0.0/"], ["http://a.1/", nil, nil], ["http://+1.1/", nil, nil], ["http://0x1_0.1/", nil, nil],
    ["http://0b1.1/", nil, nil], ["http://1..1/", nil, nil], ["http://1.a/", nil, "http://1.a/"],
    ["http://[::1]/", nil, "http://[::1]/"], ["http://[0:0:0:0:0:ffff:1.2.3.4]/", nil, "http://[::ffff:102:304]/"],
    ["http://[1::0:0:2]/", nil, "http://[1::2]/"], ["http://[::1/", nil, nil], ["http://[:::]/", nil, nil], ["http://[1:2:3:4:5:6:7:8:]/", nil, nil],
    ["http://[::1]:80/", nil, "http://[::1]/"], ["http://[::%31]/", nil, nil], ["http://[]/", nil, nil], ["http://[::1]a/", nil, nil],
    # Domains: IDNA, also where the percent-encoded and the plain meet.
    ["http://faß.de/", nil, "http://xn--fa-hia.de/"], ["http://ＧＯ.com/", nil, "http://go.com/"], ["http://é%C3%A9.com/", nil, "http://xn--9caa.com/"],
    ["http://%ff.com/", nil, nil], ["http://xn--a/", nil, nil], ["http://xn--ls8h=/", nil, nil], ["http://XN--FA-hia.de/", nil, "http://xn--fa-hia.de/"], ["http://xn--fa-hia.de/", nil, "http://xn--fa-hia.de/"],
    ["http://a\u00ADb.com/", nil, "http://ab.com/"], ["http://\u00AD/", nil, nil], ["http://a_b-.c--d/", nil, "http://a_b-.c--d/"],
    # Paths.
    ["http://h/a/./b/../c", nil, "http://h/a/c"], ["http://h/%2E/%2e%2E/a/.%2e", nil, "http://h/"], ["http://h/a/..", nil, "http://h/"],
    ["http://h/..", nil, "http://h/"], ["http://h/a/.", nil, "http://h/a/"], ["http://h//a//", nil, "http://h//a//"],
    ["http://h/a b\"<>^`{}|é%zz%41", nil, "http://h/a%20b%22%3C%3E%5E%60%7B%7D|%C3%A9%zz%41"], ["http://h/.../.a", nil, "http://h/.../.a"],
    ["http://h?a'b#c`d", nil, "http://h/?a%27b#c%60d"], ["http://h/a?b?c#d#e", nil, "http://h/a?b?c#d#e"], ["http://h/#", nil, "http://h/"],
    [" \thttp://h/a\nb ", nil, "http://h/ab"],
    # Schemes that are not special.
    ["foo://H/a/../b", nil, "foo://H/b"], ["foo://", nil, "foo://"], ["foo:///a", nil, "foo:///a"], ["foo:/a/..", nil, "foo:/"], ["foo://h:99/\\a", nil, "foo://h:99/\\a"],
    ["foo://é/", nil, "foo://%C3%A9/"], ["foo://a b/", nil, nil], ["foo://u@/x", nil, nil], ["foo://:1/", nil, nil], ["urn:isbn:1 2", nil, "urn:isbn:1 2"], ["urn:a #b", nil, "urn:a%20#b"],
    ["urn:a  ?b", nil, "urn:a %20?b"], ["data:é", nil, "data:%C3%A9"], ["1x:a", nil, nil], ["x:", nil, "x:"], ["javascript:alert(1)", nil, "javascript:alert(1)"],
    ["file:///C|/../a", nil, "file:///C:/a"], ["file://localhost/a", nil, "file:///a"], ["file:a", nil, "file:///a"], ["file:c:\\x", nil, "file:///c:/x"],
    # References.
    ["", HUB, HUB], ["?q", HUB, "#{HUB}?q"], ["#f", HUB, HUB + "#f"], ["a", HUB, "https://hub.example.com/.well-known/a"], ["..", HUB, "https://hub.example.com/"],
    ["/a", HUB, "https://hub.example.com/a"], ["//a/b", HUB, "https://a/b"], ["\\a", HUB, "https://hub.example.com/a"], ["/\\a", HUB, "https://a/"],
    ["https:a", HUB, "https://hub.example.com/.well-known/a"], ["http:a", HUB, "http://a/"], ["a:b", HUB, "a:b"], [":a", HUB, "https://hub.example.com/.well-known/:a"],
    ["/a", "https://u:p@h:1/x?y#z", "https://u:p@h:1/a"], ["?a", "https://:p@h/x#z", "https://:p@h/x?a"], ["/a", "https://u@h/", "https://u@h/a"],
    ["a", "urn:x", nil], ["#a", "urn:x?y", "urn:x?y#a"], ["", "urn:x", nil], ["a", nil, nil], ["", nil, nil], ["b", "foo://h", "foo://h/b"], ["/b", "file:///C:/a", "file:///C:/b"]
  ].freeze

  test "references are parsed as the URL Standard says" do
    CASES.each { |reference, base, expected| assert [expected] == [written(URL.parse(reference, base: base))], [reference, base].inspect }
  end

  test "the short way for canonical URLs gives what the parser gives" do
    random = Random.new(1)
    pieces = ["https://", "http://", "a.com", "xn--", "1.2.3.4", "0x1", "-", "--", ".", "..", "/", "//", "/.", "/..", "\\", "%2e", "%", "a", "B", ":80", ":443", ":8080",
      ":0", ":99999", "@", "?", "#", "é", " ", "^", "'", "\"", "`", "{", "|", "~", ";=", "[", "]", "\t", "*", "!$&()+,"]
    bases = [HUB, "http://h:8080/a/b", "https://u:p@h/?q", "foo://h/a", "urn:a", nil].map { |base| base && URL.parse_slowly(base) }
    short = 0
    6_000.times do
      string = Array.new(1 + random.rand(7)) { pieces[random.rand(pieces.size)] }.join
      string = ["https://a.com/", "/", "a", "a/"][random.rand(4)] + string if random.rand(2).zero?
      base = bases[random.rand(bases.size)]
      fast = URL.send(:fast, string, base)
      next unless fast
      short += 1
      slow = URL.parse_slowly(string, base: base)
      assert_equal slow, fast, [string, base].inspect
      assert_equal [slow.query, slow.host?, slow.origin], [fast.query, fast.host?, fast.origin]
    end
    assert_operator short, :>, 500
  end

  test "what topics mostly look like goes the short way" do
    ["https://example.com/books/1", "https://example.com", "http://a-b.example.com:8080/.well-known/x?y=z#f"].each { |topic| assert URL.send(:fast, topic, nil), topic }
    ["/books/1", "/", "/.well-known/mercure/subscriptions/x?y", "books/1", "chat"].each { |topic| assert URL.send(:fast, topic, URL.parse(HUB)), topic }
  end

  test "a URL is frozen, and does not change as a base" do
    base = URL.parse("https://h/a/b/c?q")
    before = written(base)
    %w[../../../x y ?z /w ..].each { |reference| URL.parse(reference, base: base) }
    assert_equal before, written(base)
    assert_predicate base, :frozen?
    assert base.components.all?(&:frozen?)
  end

  test "bytes that are no UTF-8 are no URL" do
    assert_nil URL.parse("http://a/\xFF")
  end

  test "hosts that only IDNA can read are no longer than DNS allows, so that none takes long" do
    {"é" * 63 => true, "é" * 64 => false, "a#{"\u0301" * 2000}" => false, "xn--#{"a9" * 40}" => false, (["é" * 50] * 5).join(".") => false, "#{"a" * 300}.com" => true}.each do |host, expected|
      assert_equal expected, !URL.parse("https://#{host}/").nil?, host[0, 70]
    end
  end

  test "white space is taken off both ends, and line ends and tabs out of the middle" do
    random = Random.new(11)
    500.times do
      text = Array.new(random.rand(12)) { ["\0", "\t", "\n", "\r", " ", "\u001F", "a", "\u00E9", "/"][random.rand(9)] }.join
      plain = text.sub(/\A[\x00-\x20]+/, "").sub(/[\x00-\x20]+\z/, "").gsub(/[\t\n\r]/, "")
      assert_equal [plain, "http://h/#{plain}"].map { |one| written(URL.parse(one, base: HUB)) }, [text, "http://h/#{plain}#{text[/[\x00-\x20]*\z/]}"].map { |one| written(URL.parse(one, base: HUB)) }, text.inspect
    end
    ["", " ", "\0\t\n\r \u001F"].each { |blank| assert_equal HUB, written(URL.parse(blank, base: HUB)) }
  end

  # What would take minutes if it were tried again at each place.
  test "runs of white space take time in proportion" do
    ["%sa", "a%s", "a%sb", "\u00E9%s\u00E9%s"].each do |form|
      assert_predicate URL.parse("http://h/#{form.gsub("%s", " " * 300_000)}"), :frozen?
      assert_predicate URL.parse("http://h/#{form.gsub("%s", "\0\t" * 150_000)}"), :frozen?
    end
    assert_equal "http://h/ab", written(URL.parse("http://h/a#{"\n" * 300_000}b#{" " * 300_000}"))
  end

  test "inspection shows no password" do
    refute_includes URL.parse("https://u:secret@h/").inspect, "secret"
  end

  test "parsers in other threads do not disturb" do
    URL.parse("https://é.example/") # Ruby loads its normalisation tables on first use
    wrong = 4.times.map { |number|
      Thread.new { 300.times.reject { URL.parse("https://h#{number}.example/%41/../é").pathname == "/%C3%A9" && URL.parse("https://é#{number}.example/").hostname.end_with?(".example") } }
    }.flat_map(&:value)
    assert_empty wrong
  end

  # The gem that knows IDNA replaces the parser of the standard library when it is loaded whole.
  test "URI of the standard library stays as it is, and the gem can still be loaded" do
    script = <<~RUBY
      require "uri"
      before = [URI::DEFAULT_PARSER, URI::Generic.ancestors, URI("http://h/a b".sub(" ", "")).to_s]
      require "hikyaku/support/url"
      Hikyaku::URL.parse("https://é.com/")
      p before == [URI::DEFAULT_PARSER, URI::Generic.ancestors, URI("http://h/ab").to_s]
      require "uri/whatwg_parser"
      p URI::WhatwgParser.new.parse("https://é.com/").host, Hikyaku::URL.parse("https://é.com/").hostname
    RUBY
    out, status = Open3.capture2e(RbConfig.ruby, "-Ilib", "-e", script, chdir: File.expand_path("../.", __dir__))
    assert_predicate status, :success?, out
    assert_equal "true\n\"xn--9ca.com\"\n\"xn--9ca.com\"\n", out
  end

  private

  def written(url)
    return unless url
    userinfo = url.username + (url.password.empty? ? "" : ":#{url.password}") + ((url.username + url.password).empty? ? "" : "@")
    port = url.port.empty? ? "" : ":#{url.port}"
    "#{url.protocol}:#{"//#{userinfo}#{url.hostname}#{port}" if url.host?}#{url.pathname}#{"?#{url.search}" unless url.search.empty?}#{"##{url.hash}" unless url.hash.empty?}"
  end
end
