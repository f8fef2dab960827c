# frozen_string_literal: true

# The ticker in plain Rack:
#
#     bundle exec puma examples/ticker/rack.ru      and open http://localhost:9292/

require "hikyaku"
require "json"
require "rack"
require_relative "market"

hub = Hikyaku.start(anonymous: true, resource_identifier: "http://localhost:9292/.well-known/mercure", engine: ENV["HIKYAKU_ENGINE"])
at_exit { hub.shutdown }

market = Market.new { |quote| Hikyaku.publish("/stocks/#{quote[:symbol]}", quote) }
market.open

json = ->(status, value) { [status, {"content-type" => "application/json", "cache-control" => "no-store"}, [JSON.generate(value)]] }
files = {"/" => "/index.html", "/ticker.js" => "/ticker.js", "/ticker.css" => "/ticker.css"}
pages = Rack::Static.new(->(_env) { json.call(404, {error: "no such page"}) }, urls: files, root: "#{__dir__}/public")

ticker = lambda do |env|
  request = Rack::Request.new(env)
  case [request.request_method, request.path_info]
  when ["GET", "/quotes"]
    # First the newest event, then the quotes: what changes between the two is sent, not lost.
    since = Hikyaku.hub.last_event_id || "earliest"
    json.call(200, {since: since, quotes: market.quotes})
  when ["POST", "/orders"]
    quote = market.buy(request.params["symbol"], Integer(request.params["shares"], exception: false))
    quote ? json.call(201, quote) : json.call(422, {error: "give a symbol, and shares from 1 to #{Market::LARGEST_ORDER}"})
  else
    pages.call(env)
  end
end

run ->(env) { hub.serves?(env["PATH_INFO"]) ? hub.call(env) : ticker.call(env) }
