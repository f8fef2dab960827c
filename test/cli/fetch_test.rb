# frozen_string_literal: true

require_relative "cli_helper"
require "digest"
require "open3"
require "rbconfig"
require "tmpdir"
require "hikyaku/http/client"
require "support/misbehaving"
require "support/rack_site"

class CLIFetchTest < Minitest::Test
  include CommandLine

  EXE = File.expand_path("../../exe/hikyaku", __dir__)
  # All of its pieces differ, so that one in the place of another is seen.
  LARGE = Array.new(30_000) { |i| format("%010d", i) }.join.b.freeze
  private_constant :EXE, :LARGE

  WAY = Misbehaving::AsTold.new do |request, _|
    case request.path[/\A[^?]*/]
    when "/large" then "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: #{LARGE.bytesize}\r\n\r\n#{LARGE}"
    when "/none" then "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno\n"
    when "/escape" then "HTTP/1.1 200 OK\r\nX-Odd: \u009B31mred\r\nContent-Length: 0\r\n\r\n"
    when "/moved" then "HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"
    when "/said" then "HTTP/1.1 200 OK\r\nContent-Length: #{request.headers["x-said"].bytesize}\r\n\r\n#{request.headers["x-said"]}"
    end
  end
  private_constant :WAY

  test "a body is printed byte for byte, be it small or large" do
    serve do |server|
      assert_equal Misbehaving.body_of("/a"), fetched(server.url("/a"))
      20.times { assert_bytes LARGE, fetched(server.url("/large")) }
      assert_bytes LARGE + Misbehaving.body_of("/a") + LARGE, fetched(server.url("/large"), server.url("/a"), server.url("/large?2"))
    end
  end

  test "several are printed in the order in which they are given, on the command line or the standard input" do
    serve do |server|
      paths = Array.new(20) { |i| "/#{i}.#{%w[gif html css][i % 3]}" }
      urls = paths.map { |path| server.url(path) }
      all = paths.map { |path| Misbehaving.body_of(path) }.join
      assert_equal all, fetched(*urls)
      assert_equal all, fetched(stdin: "\n  #{urls.join("\n\n")}\n")
    end
  end

  test "bodies are written to files of their own, whose names lead nowhere else" do
    serve do |server|
      Dir.mktmpdir do |folder|
        into = File.join(folder, "in", "to")
        paths = ["/a|b.txt", "/[x]", "/50%", "/a.txt", "/x/a.txt", "/", "/..%2f..%2fescape", "/q?x=/../1", "/%2e%2e/", "/.hidden", "/large", "/#{"y" * 300}"]
        assert_equal "", fetched("--into", into, *paths.map { |path| server.url(path) })
        assert_equal ["a_b.txt", "_x_", "50_", "_2f.._2fescape", "a-1.txt", "a.txt", "hidden", "index", "index-1", "large", "q", "y" * 100].sort, Dir.children(into).sort
        assert_bytes LARGE, File.binread(File.join(into, "large"))
        assert_equal %w[/a.txt /x/a.txt].map { |path| Misbehaving.body_of(path) }.sort, %w[a.txt a-1.txt].map { |name| File.read(File.join(into, name)) }.sort
        assert_equal %w[in], Dir.children(folder)
      end
    end
  end

  test "what is no answer, or no good one, is one line each and code 1, and takes nothing from the others" do
    serve do |server|
      result = fetch(server.url("/none"))
      assert_equal [1, "no\n", "hikyaku: #{server.url("/none")}: 404\n"], [result.code, result.out, result.err]
      refused = "http://127.0.0.1:#{TCPServer.open("127.0.0.1", 0) { |listener| listener.addr[1] }}/"
      result = fetch(refused, server.url("/a"), server.url("/none"))
      assert_equal [1, "#{Misbehaving.body_of("/a")}no\n"], [result.code, result.out]
      assert_match(/\Ahikyaku: no connection to 127\.0\.0\.1.*refused.*\nhikyaku: #{Regexp.escape(server.url("/none"))}: 404\n\z/, result.err)
      result = fetch(refused)
      assert_equal [1, "", 1], [result.code, result.out, result.err.lines.size]
    end
  end

  test "a folder that cannot be written to is one line, before anything is asked for" do
    Dir.mktmpdir do |folder|
      file = File.join(folder, "file")
      File.write(file, "")
      serve do |server|
        {
          file => "it is a file; --into takes a directory", File.join(file, "x") => "no directory can be made there (File exists)", "/proc/x" => "no directory can be made there (No such file or directory)",
          "/dev/null" => "it is a file; --into takes a directory", "/dev/null/x" => "no directory can be made there (File exists)", "" => "no directory can be made there (No such file or directory)"
        }.each do |into, reason|
          result = fetch("--into", into, server.url("/a.txt"))
          assert_equal [1, "", "hikyaku: cannot write below #{into}: #{reason}\n"], [result.code, result.out, result.err]
        end
        assert_empty server.log
      end
    end
  end

  test "of several a body of more than 64 MiB is refused, and the help says so" do
    way = Misbehaving::AsTold.new { |request, _| "HTTP/1.1 200 OK\r\nContent-Length: #{(64 << 20) + 1}\r\n\r\n" if request.path == "/huge" }
    Misbehaving.run(way) do |server|
      result = fetch(server.url("/huge"), server.url("/a"))
      assert_equal [1, Misbehaving.body_of("/a")], [result.code, result.out]
      assert_match(/has more than 67108864 bytes/, result.err)
    end
    assert_match(/of more than 64 MiB is refused/, done("fetch", "--help"))
  end

  # [arguments, what the one line says]
  MISTAKES = [
    [%w[--json {} --head http://a.example/], "--json sends something, and --head asks for heads alone: give one of them"],
    [%w[--json @-], "--json @- reads the standard input, and so do URLs that are not given: give a URL"], [%w[--json @/nowhere http://a.example/], "--json: the file \"/nowhere\" cannot be read"],
    [%w[--cert /nowhere.pem http://a.example/], "--cert: the file \"/nowhere.pem\" cannot be read"], [%w[--key /nowhere.pem http://a.example/], "--key: the file \"/nowhere.pem\" cannot be read"],
    [%w[--retries many http://a.example/], "--retries: expected a number, got \"many\""],
    [%w[--ca-file /nowhere.pem http://a.example/], "--ca-file: the file \"/nowhere.pem\" cannot be read"],
    [%w[], "give a URL; see hikyaku fetch --help"], [%w[nonsense], "\"nonsense\" is no URL; one begins with http:// or https:// and a host"],
    [%w[ftp://a.example/], "is no http or https URL"], [%w[--header a http://a.example/], "--header: expected 'Name: value', got \"a\""],
    [%w[--header Connection:close http://a.example/], "the field connection is set by the client itself"],
    [%w[--timeout soon http://a.example/], "--timeout: expected seconds, got \"soon\""], [%w[--timeout 0 http://a.example/], "--timeout: expected seconds"],
    [%w[--redirects many http://a.example/], "--redirects: expected a number"], [%w[--redirects 99 http://a.example/], "max_redirects is 99"],
    [%w[--proxy socks5://bob:secret@a.example http://b.example/], "is no http or https URL"], [%w[--proxy https://a.example http://b.example/], "not supported"]
  ].freeze
  private_constant :MISTAKES

  MISTAKES.each do |arguments, sentence|
    test "fetch #{arguments.join(" ")} is refused in one line with code 2" do
      message = refused("fetch", "--forget", *arguments)
      assert_includes message, sentence
      refute_includes message, "secret"
    end
  end

  test "nothing on the standard input is a mistake, in a process that has loaded nothing else" do
    out, err, status = Open3.capture3(RbConfig.ruby, EXE, "fetch", stdin_data: "")
    assert_equal ["", "hikyaku: give a URL; see hikyaku fetch --help\n", 2], [out, err, status.exitstatus]
  end

  test "heads are printed where that is asked for, and move no cursor" do
    serve do |server|
      assert_match(/\A200 #{Regexp.escape(server.url("/a"))}\ncontent-type: text\/plain\n.*\n\n#{Regexp.escape(Misbehaving.body_of("/a"))}\z/m, fetched("--include", server.url("/a")))
      head = fetched("--head", server.url("/a"))
      assert_match(/\A200 .*content-length: #{Misbehaving.body_of("/a").bytesize}\n\n\z/m, head)
      assert_equal "HEAD", server.log.last[1]
      refute_includes fetched("--include", server.url("/escape")).b, "\x9B".b
    end
  end

  test "what is said of each request is: its fields, its time, its redirects, its proxy" do
    serve do |server|
      assert_equal "ja", fetched("--header", "X-Said: ja", server.url("/said"))
      assert_equal Misbehaving.body_of("/there"), fetched(server.url("/moved"))
      result = fetch("--redirects", "0", server.url("/moved"))
      assert_equal [1, "hikyaku: #{server.url("/moved")}: 302\n"], [result.code, result.err]
      [server.url, server.url.delete_prefix("http://")].each_with_index do |proxy, i|
        fetched("--proxy", proxy, "http://a.test/#{i}")
        assert_equal "http://a.test/#{i}", server.log.last[2]
      end
    end
    Misbehaving.run(:slow_first_byte, seconds: 60) do |server|
      assert_match(/took longer than 0\.1 s/, fetch("--timeout", "0.1", server.url("/a")).err)
    end
  end

  test "times and explanations are told of each" do
    serve do |server|
      result = fetch("--times", "--explain", server.url("/a"), server.url("/b"))
      assert_equal %w[/a /b].map { |path| [server.url(path), "200", "#{Misbehaving.body_of(path).bytesize} B"] },
        result.out.lines.map { |line| line.chomp.split("\t").values_at(3, 0, 1) }.sort
      assert_match(/\A#{Regexp.escape(server.url.chomp("/"))} is .*pipelined.*\n\z/, result.err)
    end
  end

  test "help says all of it" do
    out = done("fetch", "--help")
    %w[--head --header --timeout --redirects --ca-file --proxy --json --retries --cert --key --unix-socket --include --into --times --explain --forget].each { |option| assert_includes out, option }
  end

  test "JSON is posted as it is, to one or to several, out of the command line, a file or the standard input" do
    echo = lambda do |env|
      body = env["rack.input"].read
      [200, {}, ["#{[env["REQUEST_METHOD"], env["PATH_INFO"], env["CONTENT_TYPE"], env["HTTP_ACCEPT"], body].join(" ")}\n"]]
    end
    RackSite.run(echo) do |site|
      text = '{"a": [1]}'
      said = ->(path) { "POST #{path} application/json application/json #{text}\n" }
      assert_equal said.call("/a"), fetched("--json", text, site.url("/a"))
      assert_equal said.call("/a") + said.call("/b"), fetched("--json", text, site.url("/a"), site.url("/b"))
      assert_equal said.call("/a"), fetched("--json", "@-", site.url("/a"), stdin: text)
      Dir.mktmpdir do |folder|
        File.write(File.join(folder, "a.json"), text)
        assert_equal "", fetched("--json", "@#{folder}/a.json", "--into", folder, site.url("/a"))
        assert_equal said.call("/a"), File.read(File.join(folder, "a"))
      end
      assert_equal "POST /a application/ld+json text/plain #{text}\n", fetched("--json", text, "--header", "Content-Type: application/ld+json", "--header", "Accept: text/plain", site.url("/a"))
    end
  end

  test "what listens on a Unix socket is asked there" do
    Dir.mktmpdir do |folder|
      path = File.join(folder, "s")
      RackSite.run(->(env) { [200, {}, [env["HTTP_HOST"]]] }, unix: path) do
        assert_equal "a.example", fetched("--unix-socket", path, "http://a.example/")
        result = fetch("--unix-socket", path, "--proxy", "127.0.0.1:1", "http://a.example/")
        assert_equal [2, true], [result.code, result.err.include?("unix_socket: and proxy: are given")]
      end
    end
  end

  test "a server that asks for patience is asked again as often as is said" do
    count = 0
    RackSite.run(->(_) { ((count += 1) < 3) ? [503, {"retry-after" => "0"}, ["no"]] : [200, {}, ["yes"]] }) do |site|
      assert_equal [1, "no"], fetch(site.url).then { |result| [result.code, result.out] }
      assert_equal "yes", fetched("--retries", "1", site.url)
    end
  end

  private

  # Without either of them in the message.
  def assert_bytes(expected, actual)
    assert_equal [expected.bytesize, Digest::SHA256.hexdigest(expected)], [actual.bytesize, Digest::SHA256.hexdigest(actual)]
  end

  def serve(&block) = Misbehaving.run(WAY, &block)

  def fetch(*arguments, **options)
    arguments = ["--proxy", "none", *arguments] unless arguments.include?("--proxy")
    hikyaku("fetch", "--forget", *arguments, **options)
  end

  def fetched(*arguments, **options)
    result = fetch(*arguments, **options)
    assert_equal [0, ""], [result.code, result.err]
    result.out
  end
end
