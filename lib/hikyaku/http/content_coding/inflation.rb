# frozen_string_literal: true

require "zlib"
require_relative "errors"

module Hikyaku
  module HTTP
    module ContentCoding
      # One stream of deflate, in whichever wrapping.
      #
      # @api private
      class Inflation
        # No byte of deflate becomes more than about 1,032: what comes out of a step is bounded by half a megabyte.
        STEP = 512
        EMPTY = "".b.freeze
        private_constant :STEP

        # @param bytes [String]
        # @return [Array(String, (String, nil))] the first step of them, and what is left, if anything is
        def self.cut(bytes)
          return [bytes, nil] if bytes.bytesize <= STEP
          [bytes.byteslice(0, STEP), bytes.byteslice(STEP, bytes.bytesize)]
        end

        # @param bits [Integer] which wrapping, as zlib says it
        def initialize(bits)
          @zlib = Zlib::Inflate.new(bits)
          @taken = 0
          @finished = false
        end

        # @return [Boolean] whether the end of the stream has come
        def finished? = @finished

        # @param step [String] see {.cut}; nothing when it is finished
        # @return [Array(String, String)] what it becomes, and what stands behind the end
        # @raise [Corrupt]
        def decode(step)
          out = @zlib.inflate(step)
          taken = @zlib.total_in - @taken
          @taken += taken
          return [out, EMPTY] unless @zlib.finished?
          @finished = true
          @zlib.close
          [out, step.byteslice(taken, step.bytesize)]
        rescue Zlib::Error => error
          raise Corrupt, "what came is not as its coding says: #{error.message}"
        end
      end
    end
  end
end
