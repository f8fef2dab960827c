# frozen_string_literal: true

require "json"
require_relative "format"
require_relative "json/engine"
require_relative "json/reader"

module Hikyaku
  module Codec
    # JSON, by the json that comes with Ruby, or a newer one.
    #
    # RFC 8259.
    class JSON < Format
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
