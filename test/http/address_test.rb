# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "uri"
require "hikyaku/http/address"

class HTTPAddressTest < Minitest::Test
  Address = Hikyaku::HTTP::Address
  InvalidURL = Hikyaku::HTTP::InvalidURL
  private_constant :Address, :InvalidURL

  # What is asked, of whom, and for what.
  READ = {
    "http://example.com" => ["http://example.com", "/"],
    "http://example.com/" => ["http://example.com", "/"],
    "HTTP://EXAMPLE.com:80/a/../b?c#d" => ["http://example.com", "/b?c"],
    "https://example.com:443/" => ["https://example.com", "/"],
    "https://example.com:80/" => ["https://example.com:80", "/"],
    "http://example.com:8080?q" => ["http://example.com:8080", "/?q"],
    "http://example.com/?" => ["http://example.com", "/?"],
    "http://example.com/#x?y" => ["http://example.com", "/"],
    "http://user:secret@example.com/a" => ["http://example.com", "/a"],
    "http://user@example.com/" => ["http://example.com", "/"],
    "http://[::1]:3000/x" => ["http://[::1]:3000", "/x"],
    "http://[0:0::1]/" => ["http://[::1]", "/"],
    "http://0x7f.1/" => ["http://127.0.0.1", "/"],
    "http:\\\\example.com\\a" => ["http://example.com", "/a"],
    " http://example.com/a \t" => ["http://example.com", "/a"],
    "http://exa\nmple.com/\r\n" => ["http://example.com", "/"],
    "http://example.com/a b\"<>`?\"<> '" => ["http://example.com", "/a%20b%22%3C%3E%60?%22%3C%3E%20%27"],
    "http://example.com/\u00FC?\u00FC" => ["http://example.com", "/%C3%BC?%C3%BC"],
    "http://b\u00FCcher.example/" => ["http://xn--bcher-kva.example", "/"],
    "http://example.com/%2e%2E/%41" => ["http://example.com", "/%41"],
    "http://example.com//a//b" => ["http://example.com", "//a//b"]
  }.freeze
  private_constant :READ

  test "a URL is read as browsers read it" do
    READ.each do |text, (origin, target)|
      address = Address.parse(text)
      assert_equal [origin, target, "#{origin}#{target}"], [address.origin.to_s, address.target, address.url], text.inspect
      assert_equal address.url, address.to_s
    end
  end

  test "what is of an origin that was read before is read as if it were not" do
    random = Random.new(1)
    pieces = ["/", "/", "//", "/.", "/..", "/%2e", "a", "B.png", "?", "&", "=", "#", "%41", "%zz", "'", "\"", " ", "\u00FC", "\\", "@", ":", "|", "^", "`", "{", "\t", "\n", "~", "[", ".gz", ";"]
    %w[http://example.com https://example.com http://example.com:8080 http://127.0.0.1:3000 http://[::1]:3000 http://example.com:80 HTTP://Example.com http://u:p@example.com].each do |origin|
      500.times do
        text = "#{origin}#{Array.new(random.rand(6)) { pieces.sample(random: random) }.join}"
        expected = unread { show(text) }
        show("#{origin}/")
        assert_equal expected, show(text), text.inspect
      end
    end
  end

  test "so are frozen, changed and foreign texts" do
    Address.parse("http://example.com/")
    text = +"http://example.com/a?b"
    address = Address.parse(text)
    text << "c"
    assert_equal ["http://example.com/a?b", "/a?b", Encoding::UTF_8], [address.url, address.target, address.url.encoding]
    assert address.frozen? && address.target.frozen? && address.url.frozen? && address.extension.frozen?
    assert_equal Encoding::UTF_8, Address.parse("http://example.com/a".b).url.encoding
    assert_equal "http://example.com/c", Address.parse("../c", base: address).url
  end

  test "not more origins are known than are worth it" do
    1_000.times { |number| Address.parse("http://h#{number}.example/") }
    assert_operator Address.instance_variable_get(:@known).size, :<=, 256
    assert_equal "http://h999.example/x", Address.parse("http://h999.example/x").url
  end

  test "what a proxy is asked for keeps its target, and is otherwise read as any other" do
    ["/", "/?", "/%7e%7E/a/./../b//c", "//a", "/a\\b?c{}|\"<>^`'", "/%"].each do |target|
      address = Address.exact("A.example:80", target.b.freeze)
      assert_equal [target, "http://a.example#{target}", "http://a.example", Encoding::UTF_8], [address.target, address.url, address.origin.to_s, address.target.encoding]
      assert address.frozen? && address.target.frozen? && address.url.frozen?
    end
    assert_equal "http://a.example/c", Address.parse("c", base: Address.exact("a.example", "/%7e/../b")).url
    assert_equal "png", Address.exact("a.example", "/a.PNG?b").extension
    ["", "*", "?a", "a", "/a b", "/a\r\n", "/a\n", "/\0", "/\u00E9", "/\xFF", "/a#b", "/\x7F", "/#{"a" * Address::MAX_BYTES}"].each do |target|
      assert_raises(InvalidURL, target[0, 20].inspect) { Address.exact("a.example", target.b) }
    end
    ["", "a b", "999.1.1.1", "a:99999"].each { |authority| assert_raises(InvalidURL, authority) { Address.exact(authority, "/") } }
  end

  test "of an origin that is known, what a proxy is asked for is not parsed again" do
    Address.exact("a.example:8080", "/")
    Address.stub(:parse, ->(*) { flunk "it is parsed again" }) do
      address = Address.exact("a.example:8080", "/%7e/../b.PNG?c")
      assert_equal ["http://a.example:8080/%7e/../b.PNG?c", "http://a.example:8080", "png"], [address.url, address.origin.to_s, address.extension]
    end
  end

  test "whatever is written on a request line is visible ASCII" do
    [*READ.keys, "http://example.com/\u0000\u0001\u007F\u2028?\u0000\u0085"].each do |text|
      address = Address.parse(text)
      [address.target, address.origin.authority].each { |part| assert_match(/\A[\x21-\x7E]+\z/, part, text.inspect) }
    end
  end

  test "an address is a value, and its origin, too" do
    address = Address.parse("http://example.com/a")
    assert address.frozen? && address.url.frozen? && address.target.frozen? && address.origin.frozen?
    one, other = %w[http://Example.com:80/a http://example.com/b].map { |url| Address.parse(url).origin }
    assert_equal one, other
    assert_equal 1, {one => 1, other => 2}.size
    refute_equal one, Address.parse("https://example.com/").origin
    refute_equal one, "http://example.com"
  end

  test "an origin says whom to connect to, and what stands in the field Host" do
    {
      "http://example.com/" => ["example.com", "example.com", 80, "example.com", false],
      "https://example.com:80/" => ["example.com", "example.com", 80, "example.com:80", true],
      "http://[::1]:3000/" => ["[::1]", "::1", 3000, "[::1]:3000", false],
      "https://[::1]/" => ["[::1]", "::1", 443, "[::1]", true]
    }.each do |url, expected|
      origin = Address.parse(url).origin
      assert_equal expected, [origin.host, origin.hostname, origin.port, origin.authority, origin.tls?], url
    end
  end

  test "user and password are told apart, and stand nowhere else" do
    address = Address.parse("http://us%40er:sec%3Aret@example.com/a")
    assert_equal %w[us%40er sec%3Aret], address.user_information
    assert_equal ["user", ""], Address.parse("http://user@example.com/").user_information
    assert_nil Address.parse("http://example.com/").user_information
    assert_nil Address.parse("http://@example.com/").user_information
    [address.url, address.to_s, address.inspect, address.target, address.origin.inspect].each { |text| refute_includes text, "sec" }
  end

  test "what is no absolute http or https URL is refused" do
    ["", " ", "/a", "a", "example.com", "//example.com/", "ftp://example.com/", "file:///etc/passwd", "ws://example.com/", "mailto:a@example.com", "javascript:alert(1)",
      "data:,x", "blob:http://example.com/", "urn:isbn:1", "http:", "http://", "http:///", "http://?q", "http://user@/", "http://:80/", "http://a b/", "http://a\u0000b/",
      "http://a%00/", "http://a%2F/", "http://a<b/", "http://a|b/", "http://[::1", "http://[::1]x/", "http://[1::2::3]/", "http://[]/", "http://256.1.1.1/", "http://1.2.3.4.5/",
      "http://a:65536/", "http://a:-1/", "http://a:8x/", "http://xn--a\u00FC/", "http://\u00AD/", "\u0000", "\uFEFFhttp://a/"].each do |text|
      error = assert_raises(InvalidURL, text.inspect) { Address.parse(text) }
      assert_kind_of Hikyaku::Error, error
      assert_kind_of ArgumentError, error
    end
  end

  test "what is no text is refused" do
    ["http://\xFF/", "http://a/\xFF", "http://a/\xFF".b, "\xFF\xFE".b, (+"http://a/\xE9").force_encoding(Encoding::US_ASCII), nil, 1, :a, Object.new, [], {}].each do |thing|
      error = assert_raises(InvalidURL, thing.inspect) { Address.parse(thing) }
      assert_predicate error.message, :valid_encoding?
    end
  end

  test "text of another encoding is read" do
    url = "http://example.com/a"
    [url.b, url.encode(Encoding::UTF_16LE), url.dup.force_encoding(Encoding::US_ASCII)].each { |text| assert_equal url, Address.parse(text).url }
    assert_equal "http://example.com/%C3%BC", Address.parse("http://example.com/\u00FC".encode(Encoding::ISO_8859_1)).url
  end

  test "a URL may have 16,000 bytes, and not one more" do
    url = "http://example.com/".ljust(Address::MAX_BYTES, "a")
    assert_equal url, Address.parse(url).url
    error = assert_raises(InvalidURL) { Address.parse(url + "a") }
    assert_includes error.message, "16000"
    assert_operator error.message.bytesize, :<, 300
    assert_raises(InvalidURL) { Address.parse("http://example.com/".ljust(Address::MAX_BYTES - 1, "a") + "\u00FC") }
  end

  test "a message shows a URL that is refused, shortened, and without its user information" do
    message = assert_raises(InvalidURL) { Address.parse("ftp://user:secret@example.com/#{"a" * 5_000}") }.message
    assert_includes message, "ftp://example.com/a"
    refute_includes message, "secret"
    assert_operator message.bytesize, :<, 300
    refute_includes assert_raises(InvalidURL) { Address.parse("http://user:secret@example.com:x/\xFF".b) }.message, "secret"
  end

  # Browsers take these for authorities as well.
  test "a message is without user information, however that is written" do
    ["http:\\\\user:secret@a:x/", "http:/user:secret@a:x/", "http:user:secret@a:x/", "http:/\n/user:secret@a:x/", "http:/\\user:secret@a:x", "http://user:sec@secret@a:x/"].each do |text|
      refute_includes assert_raises(InvalidURL, text) { Address.parse(text) }.message, "secret", text.inspect
    end
  end

  test "a reference is resolved against a base" do
    base = Address.parse("http://user:secret@example.com:81/a/b?c#d")
    {
      "" => "http://example.com:81/a/b?c", "#x" => "http://example.com:81/a/b?c", "?x" => "http://example.com:81/a/b?x", "x" => "http://example.com:81/a/x",
      "/x" => "http://example.com:81/x", "../../../x" => "http://example.com:81/x", "//other.example/x" => "http://other.example/x", "\\\\other.example" => "http://other.example/",
      "https://other.example" => "https://other.example/", "https:x" => "https://x/", "http:x" => "http://example.com:81/a/x", " x\t" => "http://example.com:81/a/x"
    }.each { |reference, url| assert_equal url, Address.parse(reference, base: base).url, reference.inspect }
    ["http://", "ftp:x", "//", "//a b", "javascript:x", "\xFF"].each { |reference| assert_raises(InvalidURL, reference) { Address.parse(reference, base: base) } }
  end

  test "an address is taken as it is, and a URI, too" do
    address = Address.parse("http://example.com/a")
    assert_same address, Address.parse(address)
    assert_equal address.url, Address.parse(URI("http://example.com/a#b")).url
  end

  test "the extension is that of the last segment, in lower case" do
    {
      "/a.png" => "png", "/A.PNG" => "png", "/a.tar.gz" => "gz", "/a.b/c" => "", "/a" => "", "/" => "", "/a." => "", "/a.png/" => "", "/.png" => "png", "/a.png?x=y.css" => "png",
      "/a.verylongext" => "", "/a.p%20ng" => "", "/a.html#b.js" => "html", "/a.mp4" => "mp4"
    }.each { |path, extension| assert_equal extension, Address.parse("http://example.com#{path}").extension, path }
  end

  private

  # Everything that can be told of an address.
  def show(text)
    address = Address.parse(text)
    [address.url, address.target, address.origin.to_s, address.extension, address.user_information, Address.parse("x?y", base: address).url]
  rescue InvalidURL => error
    error.message
  end

  def unread
    Address.instance_variable_set(:@known, {})
    yield
  end
end
