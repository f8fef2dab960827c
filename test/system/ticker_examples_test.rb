# frozen_string_literal: true

require "test_helper"
require "support/availability"
require "support/browser"
require "support/http_client"
require "support/ticker_server"

# The stock ticker in plain Rack, Sinatra and Roda: the same to whoever looks.
class TickerExamplesTest < Minitest::Test
  FILES = %w[rack.ru sinatra.ru roda.ru].freeze

  class << self
    # Two browsers, not two tabs of one: with nothing in common.
    def browsers = @browsers ||= Array.new(2) { TestBrowser.new }

    def server(file) = (@servers ||= {})[file] ||= TickerServer.new(file)

    def finish
      @browsers&.each(&:quit)
      @servers&.each_value(&:stop)
    end
  end
  Minitest.after_run { finish }

  def teardown
    @pages&.each(&:close)
    @stream&.close
  end

  FILES.each do |file|
    test "#{file}: what is bought in one browser is seen in another, and prices move by themselves" do
      one, other = open_pages(file)
      before = other.text("#KUWAN .volume").to_i
      one.click("#KUWAN button")
      [one, other].each { |page| page.until("nobody bought") { page.text("#KUWAN .volume").to_i == before + 100 } }
      prices = other.texts(".price")
      other.until("the market stands still") { other.texts(".price") != prices }
      assert_equal [[], []], [one.complaints, other.complaints]
    end

    test "#{file}: after a restart the page comes back by itself, and reads everything once more" do
      page, = open_pages(file)
      page.click("#SANJO button")
      page.until("nobody bought") { page.text("#SANJO .volume").to_i > 0 }
      server(file).stop
      page.until("it did not notice") { page.text("#connection") == "reconnecting" }
      server(file).start
      # The market was in memory.
      page.until("it did not catch up") { page.text("#SANJO .volume") == "0" && page.text("#connection") == "live" }
      page.click("#SANJO button")
      page.until("it is not live again") { page.text("#SANJO .volume") == "100" }
    end

    test "#{file}: a reader that begins where the quotes were read misses nothing" do
      since = quotes(file)["since"]
      order = server(file).post("orders", symbol: "NIHON", shares: 300)
      volume = JSON.parse(order.body)["volume"]
      assert_equal "201", order.code
      @stream = HttpClient.new(server(file).port).stream("GET", "/.well-known/mercure?#{URI.encode_www_form(match: "/stocks/NIHON", last_event_id: since)}")
      # Prices wander before it, perhaps.
      assert((1..20).any? { JSON.parse(@stream.next.data)["volume"] == volume }, "nobody was told of the order")
    end

    test "#{file}: orders that nobody could give are refused" do
      volumes = quotes(file)["quotes"].map { |quote| quote["volume"] }
      [{symbol: "NOPE", shares: 1}, {symbol: "NIHON", shares: -1}, {symbol: "NIHON", shares: "much"}, {symbol: "NIHON"},
        {"symbol[]" => "NIHON", "shares[]" => 1}, {}].each { |order| assert_equal "422", server(file).post("orders", order).code, order.inspect }
      assert_equal volumes, quotes(file)["quotes"].map { |quote| quote["volume"] }
      assert_equal "404", server(file).get("nothing").code
      assert_equal "200", server(file).get(".well-known/oauth-protected-resource/.well-known/mercure").code
    end
  end

  private

  def server(file) = self.class.server(file)

  def quotes(file) = JSON.parse(server(file).get("quotes").body)

  def open_pages(file)
    skip_unless_available("chromium")
    @pages = self.class.browsers.map(&:page)
    @pages.each do |page|
      page.visit(server(file).url)
      page.until("it is not live") { page.text("#connection") == "live" && page.texts(".symbol").size == 4 }
    end
  end
end
