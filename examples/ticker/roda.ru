# frozen_string_literal: true

# The ticker in Roda:
#
#     bundle exec puma examples/ticker/roda.ru      and open http://localhost:9292/

require "hikyaku"
require "roda"
require_relative "market"

hub = Hikyaku.start(anonymous: true, resource_identifier: "http://localhost:9292/.well-known/mercure", engine: ENV["HIKYAKU_ENGINE"])
at_exit { hub.shutdown }

MARKET = Market.new { |quote| Hikyaku.publish("/stocks/#{quote[:symbol]}", quote) }
MARKET.open

class Ticker < Roda
  plugin :json
  plugin :public, root: "#{__dir__}/public"
  plugin :send_file
  plugin(:not_found) { {error: "no such page"} }

  route do |r|
    r.public
    r.root { send_file "#{__dir__}/public/index.html" }
    response["cache-control"] = "no-store"

    r.get "quotes" do
      # First the newest event, then the quotes: what changes between the two is sent, not lost.
      since = Hikyaku.hub.last_event_id || "earliest"
      {since: since, quotes: MARKET.quotes}
    end

    r.post "orders" do
      quote = MARKET.buy(r.params["symbol"], Integer(r.params["shares"], exception: false))
      response.status = quote ? 201 : 422
      quote || {error: "give a symbol, and shares from 1 to #{Market::LARGEST_ORDER}"}
    end
  end
end

run ->(env) { hub.serves?(env["PATH_INFO"]) ? hub.call(env) : Ticker.call(env) }
