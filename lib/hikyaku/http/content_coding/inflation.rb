# frozen_string_literal: true

require "zlib"
require_relative "errors"

module Hikyaku
  module HTTP
    module ContentCoding
      # One stream of deflate, in whichever wrapping.
      class Inflation
        # No byte of deflate becomes more than about 1,032: what comes out of a step is bounded by half a megabyte.
        STEP = 512
        EMPTY = "".b.freeze
        private_constant :STEP

        def self.cut(bytes)
          return [bytes, nil] if bytes.bytesize <= STEP
          [bytes.byteslice(0, STEP), bytes.byteslice(STEP, bytes.bytesize)]
        end

        def initialize(bits)
          @zlib = Zlib::Inflate.new(bits)
          @taken = 0
          @finished = false
        end

        def finished? = @finished

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
