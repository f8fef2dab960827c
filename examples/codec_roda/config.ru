# frozen_string_literal: true

# JSON or MessagePack in Roda, as the client asks, compressed:
#
#     bundle exec puma examples/codec_roda/config.ru
#     curl -i --compressed http://localhost:9292/stations
#     curl -i -H 'Accept: application/vnd.msgpack' http://localhost:9292/stations
#     curl http://localhost:9292/stations.msgpack | bundle exec hikyaku inspect -

require "hikyaku/codec/rack/compression"
require "hikyaku/codec/rack/representation"
require "roda"

class Stations < Roda
  plugin :head
  include Hikyaku::Codec::Rack::Representation

  NAMES = %w[Nihonbashi Shinagawa Kawasaki Kanagawa Hodogaya Totsuka Fujisawa].freeze
  ALL = NAMES.each_with_index.map { |name, index| {number: index, name: name, opened: Time.utc(1601 + index)} }.freeze

  use Hikyaku::Codec::Rack::Compression

  route do |r|
    r.on "stations" do
      r.get(true) { r.halt represent(ALL, env) }

      # With a version of its own: nothing is encoded for a client that has this one.
      r.get(Integer) do |number|
        station = ALL[number] or next
        r.halt represent(station, env, etag: "station #{number}, as of 1601")
      end
    end

    r.get(/stations\.(json|msgpack|mpac)/) { |format| r.halt represent(ALL, env, formats: [format.to_sym]) }

    # As many as you like: one at a time is in memory.
    r.get("steps") do
      count = (r.params["count"] || 1_000_000).to_i
      r.halt represent(Enumerator.new(count) { |steps| count.times { |step| steps << {step: step, station: NAMES[step % NAMES.size]} } }, env)
    end
  end
end

run Stations.freeze.app
