# frozen_string_literal: true

require_relative "errors"
require_relative "library"

module Hikyaku
  module HTTP
    module ContentCoding
      # The coding br, with the gem brotli. What follows its end is passed over.
      #
      # RFC 7932.
      #
      # @api private
      class Brotli
        GEM = "brotli"
        PIECE = 65_536 # bytes that come out at once
        private_constant :PIECE

        # @return [Boolean] whether the gem is there, in a version that can stop in between
        def self.available?
          Library.there?(GEM) && !defined?(::Brotli::Decompressor).nil? && ::Brotli::Decompressor.method_defined?(:can_accept_more_data)
        end

        # @param decompressor [#process, #finished?, #can_accept_more_data]
        def initialize(decompressor = ::Brotli::Decompressor.new)
          @decompressor = decompressor
        end

        # @param bytes [String]
        # @yieldparam decoded [String]
        # @raise [Corrupt]
        def decode(bytes)
          until complete?
            out = process(bytes)
            yield out unless out.empty?
            return if out.empty? || @decompressor.can_accept_more_data
            bytes = ""
          end
        end

        # @return [Boolean] whether it may end here
        def complete? = @decompressor.finished?

        # @return [Boolean] never: there is nothing to tell by
        def mislabelled? = false

        private

        def process(bytes)
          @decompressor.process(bytes, output_buffer_limit: PIECE)
        rescue => error # the gem's own
          raise Corrupt, "what came is not as its coding says: #{error.message}"
        end
      end
    end
  end
end
