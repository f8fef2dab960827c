# frozen_string_literal: true

require "openssl"
require "socket"
require_relative "pipeline"

module Hikyaku
  module HTTP
    class Client
      # What comes on one connection: read as far as there is something, and given to the pipeline.
      class ResponseReader
        READ_BYTES = 65_536
        READS = 16 # at once: others want their turn
        QUICK = Socket.const_defined?(:TCP_QUICKACK) ? Socket::TCP_QUICKACK : nil
        private_constant :READ_BYTES, :READS, :QUICK

        def initialize(pipeline, halted:, tell:)
          @pipeline = pipeline
          @halted = halted
          @tell = tell.to_proc
          @buffer = String.new(capacity: READ_BYTES, encoding: Encoding::BINARY)
        end

        def read(io, now)
          READS.times do
            bytes = io.read_nonblock(READ_BYTES, @buffer, exception: false)
            return if bytes.is_a?(Symbol)
            return ended(now) if bytes.nil?
            yield bytes.bytesize
            cause = receive(bytes, now)
            return cause if cause || @halted.call
            return if bytes.bytesize < READ_BYTES && io.is_a?(BasicSocket) # nothing more was there
          end
          nil
        end

        # Has the kernel confirm what came now, and not in up to 40 ms (RFC 1122, section 4.2.3.2): a server may keep its next small packet back until then
        # (Nagle's algorithm, RFC 9293, section 3.7.4). It is forgotten with each packet, so it is to be said again. Linux alone can.
        def acknowledge(io) = (io.to_io.setsockopt(Socket::IPPROTO_TCP, QUICK, 1) if QUICK)

        private

        def receive(bytes, now)
          @pipeline.receive(bytes, now, &@tell)
          [:last, nil] if @pipeline.over?
        rescue Pipeline::Doubtful => error
          [error.surplus? ? :surplus : :doubtful, error]
        rescue Pipeline::Balked
          [:balked, nil]
        rescue Pipeline::IdleTimeout
          [:closed, nil]
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
