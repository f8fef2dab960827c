# frozen_string_literal: true

# The ticker in Sinatra:
#
#     bundle exec puma examples/ticker/sinatra.ru      and open http://localhost:9292/

require "hikyaku"
require "sinatra/base"
require_relative "market"

hub = Hikyaku.start(anonymous: true, resource_identifier: "http://localhost:9292/.well-known/mercure", engine: ENV["HIKYAKU_ENGINE"])
at_exit { hub.shutdown }

MARKET = Market.new { |quote| Hikyaku.publish("/stocks/#{quote[:symbol]}", quote) }
MARKET.open

class Ticker < Sinatra::Base
  set :public_folder, "#{__dir__}/public"

  get("/") { send_file File.join(settings.public_folder, "index.html") }

  get "/quotes" do
    # First the newest event, then the quotes: what changes between the two is sent, not lost.
    since = Hikyaku.hub.last_event_id || "earliest"
    json since: since, quotes: MARKET.quotes
  end

  post "/orders" do
    quote = MARKET.buy(params["symbol"], Integer(params["shares"], exception: false))
    status quote ? 201 : 422
    json quote || {error: "give a symbol, and shares from 1 to #{Market::LARGEST_ORDER}"}
  end

  not_found { json error: "no such page" }

  private

  def json(value)
    content_type :json
    cache_control :no_store
    JSON.generate(value)
  end
end

run ->(env) { hub.serves?(env["PATH_INFO"]) ? hub.call(env) : Ticker.call(env) }
