# frozen_string_literal: true

# JSON or MessagePack in Sinatra, as the client asks, compressed:
#
#     bundle exec puma examples/codec_sinatra/config.ru
#     curl -i --compressed http://localhost:9292/stations
#     curl -i -H 'Accept: application/vnd.msgpack' http://localhost:9292/stations
#     curl http://localhost:9292/stations.msgpack | bundle exec hikyaku inspect -

require "hikyaku/codec/rack/compression"
require "hikyaku/codec/rack/representation"
require "sinatra/base"

class Stations < Sinatra::Base
  helpers Hikyaku::Codec::Rack::Representation

  NAMES = %w[Nihonbashi Shinagawa Kawasaki Kanagawa Hodogaya Totsuka Fujisawa].freeze
  ALL = NAMES.each_with_index.map { |name, index| {number: index, name: name, opened: Time.utc(1601 + index)} }.freeze

  use Hikyaku::Codec::Rack::Compression
  # What Sinatra would answer to a mistake in development: a page.
  disable :show_exceptions

  get("/stations") { represent(ALL, env) }

  # With a version of its own: nothing is encoded for a client that has this one.
  get("/stations/:number") do
    station = ALL[Integer(params["number"], exception: false) || ALL.size] || halt(404)
    represent(station, env, etag: "station #{station[:number]}, as of 1601")
  end

  get("/stations.:format") do
    pass unless %w[json msgpack mpac].include?(params["format"])
    represent(ALL, env, formats: [params["format"].to_sym])
  end

  # As many as you like: one at a time is in memory.
  get("/steps") do
    count = (params["count"] || 1_000_000).to_i
    represent(Enumerator.new(count) { |steps| count.times { |step| steps << {step: step, station: NAMES[step % NAMES.size]} } }, env)
  end
end

run Stations
