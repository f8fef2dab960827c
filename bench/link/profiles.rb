# frozen_string_literal: true

module Bench
  # Links by name: settings of a {ShapedLink}, each also with packets lost.
  module Profiles
    LOSS = 0.01
    LOSSY = "-lossy"

    # Bits a second, and milliseconds that a packet is under way: half a round trip.
    LINKS = {
      "wcdma-260" => {up: 64_000, down: 384_000, delay: 130},
      "wcdma-550" => {up: 64_000, down: 384_000, delay: 275},
      "weak-4g" => {up: 750_000, down: 1_500_000, delay: 75},
      "satellite" => {up: 2_000_000, down: 10_000_000, delay: 300}
    }.transform_values(&:freeze).freeze
    ALL = LINKS.merge(LINKS.to_h { |name, settings| ["#{name}#{LOSSY}", settings.merge(loss: LOSS).freeze] }).freeze

    class << self
      # @param name [String] one of {ALL}
      # @return [Hash{Symbol => Numeric}] see {ShapedLink#initialize}
      # @raise [KeyError] there is none; it says which there are
      def fetch(name) = ALL.fetch(name) { raise KeyError, "there is no link #{name}; there are #{ALL.keys.join(", ")}" }

      # @param name [String]
      # @return [Float] seconds of a round trip of an empty packet
      def round_trip(name) = fetch(name)[:delay] * 2 / 1000.0

      # @param name [String]
      # @return [String] "64 kbit/s up, 384 kbit/s down, 260 ms"
      def describe(name)
        settings = fetch(name)
        "#{rate(settings[:up])} up, #{rate(settings[:down])} down, #{settings[:delay] * 2} ms of round trip" \
          "#{", #{(settings[:loss] * 100).round} % of the packets lost" if settings[:loss]}"
      end

      private

      def rate(bits) = (bits >= 1_000_000) ? "#{format("%.3g", bits / 1e6)} Mbit/s" : "#{bits / 1000} kbit/s"
    end
  end
end
