# frozen_string_literal: true

require "json"
require_relative "format"
require_relative "json/engine"
require_relative "json/reader"

module Hikyaku
  module Codec
    # JSON, by the json that comes with Ruby. The gem oj writes it where it is asked for; what strangers send is read by json in any case, which has the limits.
    #
    # RFC 8259.
    class JSON < Format
      class << self
        # @return [Symbol] what writes it: :json or :oj
        def engine = Engine.current

        # @param name [Symbol] :json or :oj
        # @return [Symbol]
        # @raise [Unavailable] the gem oj is not there
        # @raise [ArgumentError]
        def engine=(name)
          Engine.use(name)
        end
      end

      # @api private
      def initialize = super(:json, ["application/json"])

      # @param (see Format#dump)
      # @return (see Format#dump)
      # @raise (see Format#dump)
      def dump(object) = Engine.generate(object).force_encoding(Encoding::BINARY)

      private

      def label = "JSON"

      def read(bytes, max_depth, max_items) = Reader.read(bytes, max_depth, max_items)

      def frame(_enumerable, count) = Pieces::Frame.new(opening: "[", separator: ",", closing: "]", count: count)
    end
  end
end
