# frozen_string_literal: true

require_relative "../../support/library"
require_relative "errors"

module Hikyaku
  module HTTP
    module ContentCoding
      # The coding br, with the gem brotli. What follows its end is passed over.
      #
      # RFC 7932.
      class Brotli
        # In a version that can stop in between.
        LIBRARY = Library.new("brotli") { defined?(::Brotli::Decompressor) && ::Brotli::Decompressor.method_defined?(:can_accept_more_data) }
        PIECE = 65_536 # bytes that come out at once
        private_constant :PIECE

        def self.available? = LIBRARY.there?

        def initialize(decompressor = ::Brotli::Decompressor.new)
          @decompressor = decompressor
        end

        def step(bytes)
          return ["", nil] if complete?
          out = process(bytes)
          [out, (complete? || out.empty? || @decompressor.can_accept_more_data) ? nil : ""]
        end

        def complete? = @decompressor.finished?

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
