# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/proxy"
require "support/availability"
require "support/browser"
require "support/misbehaving"

# The proxy, and an unmodified Chromium that uses it.
class ProxySystemTest < Minitest::Test
  PIXEL = ["47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b"].pack("H*")
  private_constant :PIXEL

  # A page of forty images, one style sheet and one script.
  class Site < Misbehaving::WellBehaved
    COUNT = 40
    HTML = <<~PAGE
      <!DOCTYPE html><html><head><title>many</title><link rel="stylesheet" href="/s.css"><script src="/s.js"></script></head>
      <body>#{Array.new(COUNT) { |i| %(<img src="/i/#{i}.gif" alt="">) }.join}<form method="post" action="/form"><button>send</button></form></body></html>
    PAGE

    def misbehave(connection, request)
      type, body = content(request)
      connection.write("HTTP/1.1 200 OK\r\nContent-Type: #{type}\r\nCache-Control: no-store\r\nContent-Length: #{body.bytesize}\r\n\r\n".b + body)
    end

    private

    def content(request)
      case request.path
      when %r{\A/i/} then ["image/gif", PIXEL]
      when "/s.css" then ["text/css", "body { color: rgb(1, 2, 3) }"]
      when "/s.js" then ["text/javascript", "window.ran = true"]
      else ["text/html", (request.method == "POST") ? "<p>posted</p>" : HTML]
      end
    end
  end

  def setup
    skip_unless_available("chromium")
    @memory = File.join(Dir.mktmpdir, "origins.json")
    @proxy = Hikyaku::HTTP::Proxy.new(memory: @memory, allow: ["127.0.0.0/8", TestBrowser::NAME])
    @thread = Thread.new { @proxy.run }
    @browser = TestBrowser.new("proxy-server" => "127.0.0.1:#{@proxy.port}", "proxy-bypass-list" => "<-loopback>")
  end

  def teardown
    @browser&.quit
    @proxy&.stop
    @thread&.join
    FileUtils.rm_rf(File.dirname(@memory)) if @memory
  end

  test "a page is whole, each of its resources was asked for once, many at a time" do
    Misbehaving.run(Site.new) do |server|
      page = @browser.page
      2.times do |visit|
        page.visit(server.url("/?#{visit}"))
        assert_equal Site::COUNT, page.js("[...document.images].filter((image) => image.complete && image.naturalWidth === 1).length")
        assert_equal [true, "rgb(1, 2, 3)"], page.js("[window.ran, getComputedStyle(document.body).color]")
      end
      asked = server.log.map { |entry| entry[2] }.grep(%r{\A/[is]}).tally
      assert_equal Site::COUNT + 2, asked.size
      assert_equal [2], asked.values.uniq, "per visit once"
      page.visit("http://hikyaku.proxy/")
      assert_includes page.text("ul"), "is pipelined"
      assert_operator page.js("document.querySelectorAll('svg:first-of-type rect').length"), :>=, Site::COUNT + 3
      assert_empty page.complaints
    end
  end

  test "a form is posted" do
    Misbehaving.run(Site.new) do |server|
      page = @browser.page
      page.visit(server.url("/"))
      page.click("form button")
      page.until("it was not posted") { page.text("p") == "posted" }
      assert_equal 1, server.log.count { |entry| entry[1] == "POST" }
    end
  end

  test "with the switch of its page it passes on only" do
    page = @browser.page
    page.visit("http://hikyaku.proxy/")
    page.click("form button")
    page.until("it did not switch") { page.text("form").include?("Pipeline and fetch ahead") }
    refute_predicate @proxy, :ahead?
    Misbehaving.run(Site.new) do |server|
      page.visit(server.url("/"))
      assert_equal Site::COUNT, page.js("[...document.images].filter((image) => image.complete).length")
    end
  end
end
