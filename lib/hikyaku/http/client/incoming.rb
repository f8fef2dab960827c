# frozen_string_literal: true

require "openssl"
require_relative "pipeline"

module Hikyaku
  module HTTP
    class Client
      # What comes on one connection: read as far as there is something, and given to the pipeline.
      class Incoming
        READ_BYTES = 65_536
        READS = 16 # at once: others want their turn
        private_constant :READ_BYTES, :READS

        # @param pipeline [Pipeline]
        # @param halted [#call] whether no more is to be read for now
        # @param tell [#call] is told what the pipeline tells: see {Pipeline#receive}
        def initialize(pipeline, halted:, tell:)
          @pipeline = pipeline
          @halted = halted
          @tell = tell
          @buffer = String.new(capacity: READ_BYTES, encoding: Encoding::BINARY)
        end

        # @param io [#read_nonblock]
        # @param now [Float] seconds of the monotonic clock
        # @yieldparam count [Integer] bytes that came
        # @return [Array(Symbol, (Exception, nil)), nil] why the connection is of no more use, if it is not: see {Connection}
        # @raise [IOError, SystemCallError, OpenSSL::SSL::SSLError]
        def read(io, now)
          READS.times do
            bytes = io.read_nonblock(READ_BYTES, @buffer, exception: false)
            return if bytes.is_a?(Symbol)
            return ended(now) if bytes.nil?
            yield bytes.bytesize
            cause = receive(bytes, now)
            return cause if cause || @halted.call
          end
          nil
        end

        private

        def receive(bytes, now)
          @pipeline.receive(bytes, now, &@tell)
          [:last, nil] if @pipeline.over?
        rescue Pipeline::Doubtful => error
          [error.surplus? ? :surplus : :doubtful, error]
        rescue Pipeline::Balked
          [:balked, nil]
        rescue Pipeline::Unwanted
          [:unwanted, nil]
        rescue Parser::Malformed => error
          [:corrupt, error]
        end

        def ended(now)
          @pipeline.close(now, &@tell)
          [:closed, nil]
        rescue Parser::Malformed => error
          [(error.reason == :truncated) ? :closed : :corrupt, error]
        rescue Pipeline::Doubtful => error
          [:doubtful, error]
        end
      end
    end
  end
end
