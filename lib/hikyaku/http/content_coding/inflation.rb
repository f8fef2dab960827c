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
        # No byte of deflate becomes more than about 1,032: what comes out of a step is bounded by a megabyte.
        STEP = 1_024
        EMPTY = "".b.freeze
        private_constant :STEP, :EMPTY

        # @param bytes [String]
        # @yieldparam step [String] a part of them
        def self.each_step(bytes)
          return yield(bytes) if bytes.bytesize <= STEP
          (0...bytes.bytesize).step(STEP) { |at| yield bytes.byteslice(at, STEP) }
        end

        # @param bits [Integer] which wrapping, as zlib says it
        def initialize(bits)
          @zlib = Zlib::Inflate.new(bits)
          @taken = 0
          @finished = false
        end

        # @return [Boolean] whether the end of the stream has come
        def finished? = @finished

        # @param step [String] see {.each_step}; nothing when it is finished
        # @yieldparam decoded [String]
        # @return [String] what stands behind the end
        # @raise [Corrupt]
        def decode(step)
          out, rest = inflate(step)
          yield out unless out.empty?
          rest
        end

        private

        def inflate(step)
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
