# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/proxy/scanner"

class HTTPProxyScannerTest < Minitest::Test
  Scanner = Hikyaku::HTTP::Proxy::Scanner
  BASE = "http://example.com/dir/page.html"

  # HTML, and the paths that are found in it.
  FOUND = {
    "<img src=a.png>" => %w[/dir/a.png],
    "<IMG SRC='/a.png'/>" => %w[/a.png],
    "<img\nalt=\"<img src=b>\"\tsrc = \"a\">" => %w[/dir/a],
    "<img/src=a/>" => %w[/dir/a/],
    "<img src=a src=b>" => %w[/dir/a],
    "<img alt=x\"y src=a>" => %w[/dir/a],
    "<img a\"b=c>d\" src=a><img src=e>" => %w[/dir/e],
    "<img =src=b src=a>" => %w[/dir/a],
    "<img alt='>' src=a>" => %w[/dir/a],
    "<image src=a>" => %w[/dir/a],
    "<img src=a loading=eager><img src=b loading=LAZY>" => %w[/dir/a],
    "<img src=><img src=''><img src=' '><img src><img>" => [],
    "<img src=a><img src=./a><img src=../dir/a><img src=a#b>" => %w[/dir/a],
    "<img src=#a><img src=page.html>" => [],
    "<input type=image src=a><input type=IMAGE src=b><input type=text src=c><input src=d>" => %w[/dir/a /dir/b],
    "<link rel=stylesheet href=a><link rel='x StyleSheet' href=b>" => %w[/dir/a /dir/b],
    "<link rel='alternate stylesheet' href=a><link rel=stylesheet href=b disabled>" => [],
    "<link rel=stylesheet type=text/css href=a><link rel=stylesheet type='text/css; charset=utf-8' href=b><link rel=stylesheet type=text/less href=c>" => %w[/dir/a /dir/b],
    "<link rel=stylesheet media=print href=a><link rel=stylesheet media='screen and (min-width: 9px)' href=b><link rel=stylesheet media='not screen' href=c>" => %w[/dir/b],
    "<link rel=stylesheet media='print, (orientation: portrait)' href=a><link rel=stylesheet media='only print and (color)' href=b>" => %w[/dir/a],
    "<link rel=icon href=a><link rel='shortcut icon' href=a><link rel=prefetch href=a><link rel=preconnect href=a><link rel=next href=a><link href=a>" => [],
    "<link rel=preload as=font href=a><link rel=preload href=b><link rel=preload as=document href=c><link rel=preload as=fetch href=d>" => %w[/dir/a /dir/d],
    "<link rel=preload as=image type=image/webp href=a><link rel=preload as=image type=image/jxl href=b><link rel=preload as=style media=print href=c>" => %w[/dir/a],
    "<link rel=preload as=image imagesrcset='a 1x, b 2x' href=c><link rel=preload as=image media='(max-width: 600px)' href=d>" => %w[/dir/a],
    "<link rel=modulepreload href=a><link rel=modulepreload as=worker href=b>" => %w[/dir/a],
    "<script src=a></script><script type=module src=b></script><script type='' src=c></script>" => %w[/dir/a /dir/b /dir/c],
    "<script type=Text/JavaScript src=a></script><script type=text/template src=b></script><script type=importmap src=c></script>" => %w[/dir/a],
    "<script nomodule src=a></script><script type=module nomodule src=b></script><script for=window event=onload src=c></script>" => %w[/dir/b],
    "<script language=JavaScript src=a></script><script language=vbscript src=b></script><script type=' ' src=c></script>" => %w[/dir/a],
    "<script async src=a></script><script defer src=b></script>" => %w[/dir/a /dir/b],
    "<body background=a><table background=b><tr><td background=c><th background=d></table><td background=e>" => %w[/dir/a /dir/b /dir/c /dir/d],
    "<body><body background=a>" => [],
    "<video poster=a src=b></video><audio src=c></audio><iframe src=d></iframe><object data=e></object><embed src=f>" => %w[/dir/a],
    "<picture><source srcset=a><img src=b></picture><img src=c>" => %w[/dir/a /dir/c],
    "<picture><source srcset=a media='(max-width: 600px)'><source srcset=b media='(min-width: 600px)'><source srcset=c><img src=d></picture>" => %w[/dir/b],
    "<picture><source srcset=a type=image/webp><img src=b></picture>" => %w[/dir/a],
    "<picture><source srcset=a type=image/jxl><img src=b></picture><picture><source srcset=a media='(prefers-color-scheme: dark)'><img src=b></picture>" => [],
    "<picture><source src=a><img src=b></picture><video><source srcset=c></video>" => %w[/dir/b],
    "<picture><source srcset=a><img src=b loading=lazy></picture>" => [],
    "<picture><source srcset=a><template></picture></template><img src=b></picture>" => %w[/dir/a],
    "<picture><source srcset=a></picture><img src=b>" => %w[/dir/b]
  }.freeze

  # HTML, and the frames that are found in it.
  FRAMES = {
    "<iframe src=a></iframe><iframe src=//other.example/b loading=lazy></iframe>" => %w[http://example.com/dir/a http://other.example/b],
    "<base href=/b/><frameset><frame src=c><frame src=d#e></frameset>" => %w[http://example.com/b/c http://example.com/b/d],
    "<iframe></iframe><iframe src=''></iframe><iframe src=about:blank></iframe><iframe srcdoc='<iframe src=a></iframe>'></iframe>" => [],
    "<template><iframe src=a></iframe></template><!-- <iframe src=b> --><iframe><iframe src=c></iframe>" => []
  }.freeze

  # What is no element: HTML, and the paths that are found round it.
  PASSED_OVER = {
    "<!-- <img src=a> --><img src=z>" => %w[/dir/z],
    "<!--><img src=y><!-- --><img src=z>" => %w[/dir/y /dir/z],
    "<!---><img src=z>" => %w[/dir/z],
    "<!----><img src=z>" => %w[/dir/z],
    "<!--- ><img src=a>--><img src=z>" => %w[/dir/z],
    "<!---!><img src=a>--><img src=z>" => %w[/dir/z],
    "<!-- <img src=a> --!><img src=z>" => %w[/dir/z],
    "<!-- -- > - -><img src=a>--><img src=z>" => %w[/dir/z],
    "<!-- <!-- --><img src=z> -->" => %w[/dir/z],
    "<!doctype html><img src=z>" => %w[/dir/z],
    "<!-x <img src=a><img src=z>" => %w[/dir/z],
    "<?php <img src=a><img src=z>" => %w[/dir/z],
    "</ <img src=a><img src=z>" => %w[/dir/z],
    "</><img src=z>" => %w[/dir/z],
    "< img src=a><3 <<img src=z>" => %w[/dir/z],
    "<![CDATA[<img src=a>]]><img src=z>" => %w[/dir/z],
    "<svg><![CDATA[<img src=a>]]></svg><img src=z>" => %w[/dir/z],
    "<svg><![CDATA[<img src=a>]] >]]]><image href=b /></svg><img src=z>" => %w[/dir/z],
    "<script>'<img src=a>'</script><img src=z>" => %w[/dir/z],
    "<script>'<img src=a>'</scripty ></SCRIPT\n foo='</script>'><img src=z>" => %w[/dir/z],
    "<script><!-- <script> </script> <img src=a> --></script><img src=z>" => %w[/dir/z],
    "<script><!-- <script> --> </script><img src=z>" => %w[/dir/z],
    "<script><!-- </script><img src=z> -->" => %w[/dir/z],
    "<script><!--><script></script><img src=z>" => %w[/dir/z],
    "<script><!-- <scripts> </script><img src=z>" => %w[/dir/z],
    "<script><!-- <script </script/ <img src=a> </script><img src=z>" => %w[/dir/z],
    "<style><img src=a></style><textarea><img src=a></textarea><title><img src=a></title><xmp><img src=a></xmp><img src=z>" => %w[/dir/z],
    "<noscript><img src=a></noscript><iframe><img src=a></iframe><noembed><img src=a></noembed><noframes><img src=a></noframes><img src=z>" => %w[/dir/z],
    "<iframe srcdoc='<img src=a>'></iframe><img src=z>" => %w[/dir/z],
    "<title/><img src=a></title><img src=z>" => %w[/dir/z],
    "<textarea></text></textarea ><img src=z>" => %w[/dir/z],
    "<style><!-- </style><img src=z>" => %w[/dir/z],
    "<template><img src=a><template></template><img src=b></template><img src=z></template><img src=y>" => %w[/dir/z /dir/y],
    "<template><script>'</template>'</script><img src=a></template><img src=z>" => %w[/dir/z],
    "<template shadowrootmode=open><img src=a></template>" => [],
    "<svg><image href=a /><style><circle></style><script src=b></script></svg><img src=z>" => %w[/dir/z],
    "<svg><title><b>x</b></title></svg><title><img src=a></title><img src=z>" => %w[/dir/z],
    "<svg><foreignObject><img src=y></foreignObject><link rel=stylesheet href=a></svg><img src=z>" => %w[/dir/y /dir/z],
    "<svg><img src=y><style><img src=a></style><img src=z>" => %w[/dir/y /dir/z],
    "<svg><title><title></title><style><img src=a></style></title></svg><img src=z>" => %w[/dir/z],
    "<svg/><style><img src=a></style><img src=z>" => %w[/dir/z],
    "<svg><font><style></font></svg><svg><font color=red><style><img src=a></style><img src=z>" => %w[/dir/z],
    "<svg><g></p><style><img src=a></style><img src=z>" => %w[/dir/z],
    "<svg><desc><svg></svg></desc><image href=a></svg><img src=z>" => %w[/dir/z],
    "<math><mi><img src=y></mi><annotation-xml encoding=text/html><img src=z></annotation-xml><mglyph src=a></math>" => %w[/dir/y /dir/z],
    "<plaintext><img src=a></plaintext><img src=z>" => [],
    "<div title=\"<img src=a>\"><p data-x='<img src=a>'><img src=z>" => %w[/dir/z],
    "<div style='background: url(a)'><style>@import 'a'; b { background: url(a) }</style><img src=z>" => %w[/dir/z],
    "<imgx src=a><im src=a></img src=a><img src=z" => []
  }.freeze

  # A reference as it stands between double quotes, and the URL that it comes to.
  REFERENCES = {
    "a b" => "http://example.com/dir/a%20b",
    " \n a\t " => "http://example.com/dir/a",
    "a\nb\tc\rd" => "http://example.com/dir/abcd",
    "../a/./b/../c" => "http://example.com/a/c",
    "%2e%2E/a" => "http://example.com/a",
    "?q=1&amp;r=2" => "http://example.com/dir/page.html?q=1&r=2",
    "?q=1&r=2&copy=3&amp" => "http://example.com/dir/page.html?q=1&r=2&copy=3&",
    "?a&notit;b" => nil,
    "?a&lang=de" => "http://example.com/dir/page.html?a&lang=de",
    "?&lt;&gt;&quot;&apos;&#39;&#x2F;&#x2f" => "http://example.com/dir/page.html?%3C%3E%22%27%27//",
    "a&nbsp;b&nbsp" => "http://example.com/dir/a%C2%A0b%C2%A0",
    "&eacute&Eacute;" => "http://example.com/dir/%C3%A9%C3%89",
    "a&sol;b&colon;c&period;&quest;&Tab;d" => "http://example.com/dir/a/b:c.?d",
    "&#128;&#0;&#xD800;&#x110000;" => "http://example.com/dir/%E2%82%AC%EF%BF%BD%EF%BF%BD%EF%BF%BD",
    "&#;&#x;&;" => "http://example.com/dir/&",
    "&NotEqualTilde;" => nil,
    "//other.example/a" => "http://other.example/a",
    "https://other.example:443/a#b" => "https://other.example/a",
    "HTTP://EXAMPLE.com:80" => "http://example.com/",
    "http:a" => "http://example.com/dir/a",
    "\\a\\b" => "http://example.com/a/b",
    "caf\u00E9/\u00FC?\u00F6" => "http://example.com/dir/caf%C3%A9/%C3%BC?%C3%B6",
    "http://caf\u00E9.example/" => "http://xn--caf-dma.example/",
    "{}|^`" => "http://example.com/dir/%7B%7D|%5E%60",
    "a'b" => "http://example.com/dir/a'b",
    "javascript:void(0)" => nil,
    "JaVaScRiPt:1" => nil,
    "java\nscript:1" => nil,
    "data:image/gif;base64,AAAA" => nil,
    "about:blank" => nil,
    "blob:http://example.com/1" => nil,
    "ftp://example.com/a" => nil,
    "mailto:a@b" => nil,
    "http://user@example.com/a" => nil,
    "http://user:secret@example.com/a" => nil,
    "http://" => nil,
    "http://a b/" => nil,
    "http://[::1" => nil,
    "http://h:99999/" => nil,
    "a\n<b" => nil,
    "a\0b" => nil,
    "a#{" " * 40}b" => "http://example.com/dir/a#{"%20" * 40}b"
  }.freeze

  # Attributes of an img, and what is chosen.
  CHOICES = {
    "srcset='a 2x' src=b" => "/dir/b",
    "srcset='a 2x'" => "/dir/a",
    "srcset='a 2x, b 3x'" => "/dir/a",
    "srcset='a 0.5x, b 0.75x'" => "/dir/b",
    "srcset='a .5x, b 1.5x, c 2x'" => "/dir/b",
    "srcset='a, b 2x' src=c" => "/dir/a",
    "srcset='a 1x' src=b" => "/dir/a",
    "srcset='' src=b" => "/dir/b",
    "srcset='a 1q, b -1x, c 0w, d 1x 2x, e 5h, f 1w 1w' src=g" => "/dir/g",
    "srcset='a 1e0x'" => "/dir/a",
    "srcset=',,a,,b 2x,' src=c" => "/dir/c",
    "srcset=',,a,,b 2x,'" => "/dir/a,,b",
    "srcset='a,, b 2x' src=c" => "/dir/a",
    "srcset='a (x, y), b 1x' src=c" => "/dir/b",
    "srcset='a 320w, b 1280w, c 2560w' src=d" => "/dir/b",
    "srcset='a 320w, b 1281w, c 2560w' src=d" => "/dir/b",
    "srcset='a 320w, b 640w'" => "/dir/b",
    "srcset='a 320w 200h, b 640w 400h' sizes=320px" => "/dir/a",
    "srcset='a 320w, b 640w' sizes='25vw'" => "/dir/a",
    "srcset='a 320w, b 640w' sizes='20em'" => "/dir/a",
    "srcset='a 320w, b 640w' sizes='(max-width: 600px) 640px, 320px'" => "/dir/a",
    "srcset='a 320w, b 640w' sizes='(min-width: 600px) 640px, 320px'" => "/dir/b",
    "srcset='a 320w, b 640w' sizes='(min-width: 30em) and (max-width: 1279px) 640px, (min-width: 0px) 300px'" => "/dir/a",
    "srcset='a 320w, b 640w' sizes='calc(100vw - 2em)' src=c" => nil,
    "srcset='a 320w, b 640w' sizes='auto' src=c" => nil,
    "srcset='a 320w, b 640w' sizes='(orientation: portrait) 1px, 2px' src=c" => nil,
    "srcset='data:image/gif;base64,AAAA 1x, b 2x' src=c" => nil
  }.freeze
  private_constant :Scanner, :BASE, :FOUND, :PASSED_OVER, :REFERENCES, :CHOICES

  test "frames are found, and are nothing to fetch" do
    FRAMES.each do |html, urls|
      scanner = Scanner.new(base: BASE)
      assert_empty scanner << html
      assert_equal urls, scanner.frames, html
      assert_empty scanner.frames
    end
    scanner = Scanner.new(base: BASE, max_urls: 2)
    scanner << "<iframe src=a></iframe>" * 5
    assert_equal 2, scanner.frames.size
  end

  test "what a browser asks for by itself is found" do
    FOUND.each { |html, paths| assert_equal paths, paths(html), html }
  end

  test "what is no element of the page is passed over" do
    PASSED_OVER.each { |html, paths| assert_equal paths, paths(html), html }
  end

  test "references come to the URLs that a browser asks for" do
    REFERENCES.each { |reference, url| assert_equal [url].compact, urls("<img src=\"#{reference}\">", charset: "utf-8"), reference.inspect }
  end

  test "of several images one is chosen, as at one device pixel and 1280 wide" do
    CHOICES.each { |attributes, path| assert_equal [path].compact, paths("<img #{attributes}>"), attributes }
  end

  test "it is told of what kind each is, and what the request depends on" do
    html = <<~HTML
      <meta name=referrer content=Origin><link rel=stylesheet href=s crossorigin><link rel=preload as=Font href=f crossorigin=anonymous>
      <script src=c crossorigin=use-credentials referrerpolicy=No-Referrer></script><script type=module src=m></script><img src=i><link rel=preload as=fetch href=o>
    HTML
    found = Scanner.new(base: BASE) << html
    expected = [
      ["s", :style, nil, :anonymous, "origin", false], ["f", :font, "font", :anonymous, "origin", false], ["c", :script, nil, :credentials, "no-referrer", false],
      ["m", :script, nil, :anonymous, "origin", true], ["i", :image, nil, nil, "origin", false], ["o", :other, "fetch", nil, "origin", false]
    ]
    assert_equal expected, found.map { |inline| [inline.url[-1], inline.kind, inline.as, inline.crossorigin, inline.referrer_policy, inline.module?] }
    assert found.all?(&:frozen?)
    assert_equal found, Scanner.new(base: BASE) << html
  end

  test "the first base with a URL is what references are relative to" do
    {
      "<img src=a><base href=/b/><img src=c>" => %w[/dir/a /b/c],
      "<base target=x><base href=/b/><base href=/c/><img src=a>" => %w[/b/a],
      "<base href=b/><img src=a>" => %w[/dir/b/a],
      "<base href='data:,x'><img src=a>" => %w[/dir/a],
      "<base href='http://['><base href=/c/><img src=a>" => %w[/dir/a],
      "<base href='ftp://h/'><img src=a><img src=http://example.com/c>" => %w[/c],
      "<template><base href=/b/></template><img src=a>" => %w[/dir/a],
      "<svg><base href=/b/></svg><img src=a>" => %w[/dir/a],
      "<base href='#{"x" * 9000}'><img src=a>" => []
    }.each { |html, paths| assert_equal paths, paths(html), html[0, 99] }
    assert_equal ["https://b.example/c/a"], urls("<base href=https://b.example/c/d><img src=a>")
  end

  test "a Content-Security-Policy in the page forbids what comes after it" do
    meta = "<meta http-equiv=Content-Security-Policy content=\"%s\">"
    {
      "<img src=a>#{format(meta, "img-src 'none'")}<img src=b><script src=c></script>" => %w[/dir/a /dir/c],
      "#{format(meta, "default-src 'self'")}<img src=//b.example/a><img src=b>" => %w[/dir/b],
      "#{format(meta, "img-src &#39;none&apos;")}<img src=b><script src=c></script>" => %w[/dir/c],
      "#{format(meta, "img-src *")}#{format(meta, "img-src 'none'")}<img src=b><link rel=stylesheet href=c>" => %w[/dir/c],
      "#{format(meta, "")}<meta http-equiv=Content-Security-Policy><img src=b>" => %w[/dir/b],
      "<meta http-equiv=Content-Security-Policy-Report-Only content=\"img-src 'none'\"><meta name=Content-Security-Policy content=\"img-src 'none'\"><img src=b>" => %w[/dir/b],
      "<template>#{format(meta, "img-src 'none'")}</template><img src=b>" => %w[/dir/b],
      "#{format(meta, "base-uri 'self'")}<base href=/b/><img src=c>" => %w[/b/c],
      "#{format(meta, "base-uri 'none'")}<base href=/b/><img src=c>" => [],
      "#{format(meta, "base-uri *")}<base href=ftp://b/><img src=/c>" => [],
      # What cannot be read may forbid anything, and so may one of too many.
      "#{format(meta, "img-src &NotEqualTilde;")}<img src=b>" => [],
      "#{format(meta, "img-src #{"a " * Scanner::MAX_VALUE}")}<img src=b>" => [],
      "#{format(meta, "img-src *") * 8}<img src=b>" => %w[/dir/b],
      "#{format(meta, "img-src *") * 9}<img src=b>" => []
    }.each { |html, paths| assert_equal paths, paths(html), html[0, 200] }
    scanner = Scanner.new(base: BASE)
    assert_empty scanner << format(meta, "img-src \u00E9").b
    assert_predicate scanner, :done?
    assert_empty scanner << "<img src=c>"
  end

  test "of a page that forbids much no more is looked at than of one that contains much" do
    scanner = Scanner.new(base: BASE, max_urls: 3, policies: ["img-src 'none'"])
    scanner << "<img src=a><img src=b><img src=c>"
    refute_predicate scanner, :done?
    assert_empty scanner << "<img src=d><script src=e></script>"
    assert_predicate scanner, :done?
  end

  test "characters beyond ASCII are read in the charset of the page, and passed over where that is not known" do
    html = "<img src=\u00E9><img src=a>"
    utf_8 = %w[/dir/%C3%A9 /dir/a]
    assert_equal utf_8, paths(html, charset: "UTF-8")
    assert_equal %w[/dir/a], paths(html)
    assert_equal %w[/dir/a], paths(html, charset: "gb18030")
    assert_equal %w[/dir/%C3%83%C2%A9 /dir/a], paths(html, charset: " \"ISO-8859-1\"")
    assert_equal %w[/dir/%C3%A9], paths("<img src=\xE9>".b, charset: "latin1")
    assert_equal %w[/dir/a], paths("<img src=\xE9><img src=a>".b, charset: "utf-8")
    assert_equal utf_8, paths("\uFEFF#{html}", charset: "latin1")
    assert_equal utf_8, paths("<meta charset=utf8>#{html}")
    assert_equal utf_8, paths("<meta charset=utf-16le>#{html}")
    assert_equal utf_8, paths("<meta http-equiv=content-type content='text/html; charset = \"utf-8\"'>#{html}")
    assert_equal %w[/dir/%C3%83%C2%A9 /dir/a], paths("<meta charset=utf-8>#{html}", charset: "windows-1252")
    assert_equal %w[/dir/a], paths("#{" " * 1024}<meta charset=utf-8>#{html}")
    assert_equal %w[/dir/%C3%A9], paths("<img src='&eacute;'><img src='?&eacute;'>")
    assert_equal %w[/dir/a], paths("<img src='?\u00E9'><img src=a>", charset: "windows-1252")
  end

  test "nothing is found in what is no extension of ASCII" do
    assert_empty paths("<img src=a>".encode("UTF-16LE"), charset: "utf-16le")
    assert_empty paths("<img src=a>", charset: "utf-16")
    assert_empty paths("<img src=a>", charset: "ISO-2022-JP")
    assert_empty paths("\xFF\xFE<img src=a>".b)
    assert_equal %w[/dir/a], paths("<img src=a><meta charset=iso-2022-jp><img src=b>")
  end

  test "each URL is told once, in the order of the page, and no more than so many" do
    scanner = Scanner.new(base: BASE, max_urls: 3)
    assert_equal %w[a b], (scanner << "<img src=a><img src=b><script src=a></script><img src=a>").map { |inline| inline.url[-1] }
    refute_predicate scanner, :done?
    assert_equal %w[c], (scanner << "<img src=c><img src=d>").map { |inline| inline.url[-1] }
    assert_predicate scanner, :done?
    assert_empty scanner << "<img src=e>"
    assert_empty Scanner.new(base: BASE, max_urls: 0) << "<img src=a>"
  end

  test "a value that is too long is passed over, and its element, if it asks with it" do
    long = "a" * (Scanner::MAX_VALUE + 1)
    assert_equal ["/dir/#{long.chop}"], paths("<img src=#{long.chop}>")
    assert_equal %w[/dir/z], paths("<img src=#{long}><img src='#{long}'><img srcset=#{long} src=a><img src=z alt=#{long}>")
    assert_equal %w[/dir/z], paths("<img #{long}=#{long} src=z>")
    assert_empty paths("<#{long} src=a>")
  end

  test "a tag that is too long is passed over, and what follows it is understood" do
    long = "x='#{"y" * 100}' " * 1000
    assert_equal %w[/dir/z], paths("<img src=a #{long}><script #{long}>'<img src=b>'</script><style #{long}><img src=c></style><img src=z>")
    assert_empty paths("<meta #{long}><img src=a>")
    assert_equal %w[/dir/a], paths("<img src=a #{"x" * (Scanner::MAX_TAG - 12)}>")
    assert_empty paths("<img src=a #{"x" * (Scanner::MAX_TAG - 11)}>")
  end

  test "lengths and places are those of the page, in however many pieces it comes" do
    found = lambda do |html|
      scanner = Scanner.new(base: BASE)
      (0...html.bytesize).step(999).flat_map { |at| scanner << html.byteslice(at, 999) }.map { |inline| inline.url[-1] }
    end
    assert_equal %w[a], found.call("<p>" * 50_000 + "<img src=a #{"x" * (Scanner::MAX_TAG - 12)}>")
    assert_equal %w[z], found.call("<p><img src=a #{"x" * (Scanner::MAX_TAG - 11)}><img src=z>")
    assert_equal %w[z], found.call("#{" " * 1_500}<meta charset=utf-8><img src=\u00E9><img src=z>")
  end

  test "wherever a page is cut, the same is found" do
    [*FOUND, *PASSED_OVER].each do |html, paths|
      (1...html.bytesize).each do |at|
        scanner = Scanner.new(base: BASE)
        found = (scanner << html.byteslice(0, at)) + (scanner << html.byteslice(at..))
        assert_equal paths, found.map { |inline| inline.url.delete_prefix("http://example.com") }, "#{html}, cut at #{at}"
      end
    end
    page = sample
    whole = Scanner.new(base: BASE) << page
    assert_operator whole.size, :>, 50
    [*1..20, 100, 1000].each do |step|
      scanner = Scanner.new(base: BASE)
      assert_equal whole, (0...page.bytesize).step(step).flat_map { |at| scanner << page.byteslice(at, step) }, "in pieces of #{step}"
    end
  end

  test "random bytes raise nothing, and are found the same however they are cut" do
    random = Random.new(7)
    parts = ["<", ">", "</", "/>", "<!--", "-->", "--!>", "=", "\"", "'", " ", "\n", "\0", "&", ";", "&amp", "&#x", "\xE9", "\xC3\xA9", "<img src=", "<script>", "</script>",
      "<svg>", "</svg>", "<![CDATA[", "]]>", "<template>", "</template>", "<link rel=stylesheet href=", "<base href=", "<meta charset=", "utf-8", "a", "srcset", "1x", ",", "(",
      "<picture>", "<source srcset=", "<title>", "</title>", "http://", "[", "]", "?", "#", "%", "\\", "<p", "<math>", "<mi>"].map(&:b)
    1_000.times do
      page = Array.new(random.rand(60)) { (random.rand(8) > 0) ? parts[random.rand(parts.size)] : random.bytes(random.rand(4)) }.join
      whole = Scanner.new(base: BASE, charset: "utf-8") << page
      scanner = Scanner.new(base: BASE, charset: "utf-8")
      pieces = []
      until page.empty?
        pieces.concat(scanner << page.byteslice(0, 1 + random.rand(9)).tap { |piece| page = page.byteslice(piece.bytesize..) })
      end
      assert_equal whole, pieces
    end
  end

  # What would take minutes if it were searched again with each piece, or tried at each place.
  test "hostile pages take time in proportion" do
    spaces = " " * 8_000
    ["<", "<!", "<!-", "<!--", "-", "<script><!--<script", "<a ", "<a b=", "<svg>", "<p>", "&", "<img src='", "<template>", "</", "<img src='a#{spaces}b'>",
      "<img srcset='a#{"," * 8_000}b'>", "<img srcset='#{"a(" * 4_000}'>", "<img srcset='#{"a," * 4_000}b' sizes='#{"(," * 4_000}'>", "<link rel=stylesheet href=a media='a#{spaces}b'>",
      "<link rel='a#{spaces}b' href=a>", "<img src='#{"&" * 8_000}'>", "<img src='#{"a/../" * 1_600}'>", "<meta charset='#{spaces}a#{spaces}'>",
      "<meta http-equiv=content-type content='#{"charset" * 1_000}'>", "<img src='http://#{"a." * 4_000}'>", "<img src='http://#{"\u00E9" * 4_000}/'>"].each do |part|
      scanner = Scanner.new(base: BASE, charset: "utf-8")
      page = part.b * (150_000 / part.bytesize)
      (0...page.bytesize).step(1_000) { |at| scanner << page.byteslice(at, 1_000) }
    end
    scanner = Scanner.new(base: BASE)
    100_000.times { scanner << "-" }
    assert_equal %w[http://example.com/dir/a], (scanner << "<img src=a>").map(&:url)
  end

  test "it wants an absolute URL, and shows nothing of the page" do
    ["/page", "", "mailto:a", "\xFF"].each { |base| assert_kind_of Hikyaku::Error, assert_raises(Hikyaku::HTTP::InvalidURL) { Scanner.new(base: base) } }
    scanner = Scanner.new(base: "#{BASE}?secret")
    scanner << "<img src='secret"
    refute_includes scanner.inspect, "secret"
  end

  private

  def urls(html, **options) = (Scanner.new(base: BASE, **options) << html).map(&:url)

  def paths(html, **options) = urls(html, **options).map { |url| url.delete_prefix("http://example.com") }

  # All that the tables have, each with URLs of its own where it is found.
  def sample
    parts = [*FOUND.keys, *PASSED_OVER.keys.reject { |html| html.include?("plaintext") || html.end_with?("src=z") }, *CHOICES.keys.map { |attributes| "<img #{attributes}>" }]
    parts.each_with_index.map { |html, index| "<base href=/>#{html.gsub("src=", "src=#{index}/").gsub("href=", "href=#{index}/")}</svg></math></template></picture></table>" }.join.b
  end
end
