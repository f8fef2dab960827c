# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # Bytes that wait to be sent, in chunks: the first frame of a turn is a chunk as it is, and what follows is appended to it. A chunk
      # that was taken is not changed any more.
      class OutputBuffer
        CHUNK = 64 * 1024
        private_constant :CHUNK

        # Bytes that were not sent yet.
        attr_reader :size
        # How many of them are no deliveries; those of a chunk that is being sent count until it was.
        attr_reader :answers

        def initialize
          @chunks = []
          @shares = [] # bytes of answers in each chunk, that at the front included
          @last = nil
          @front = nil
          @sent = 0
          @size = @answers = 0
        end

        # Appends what is not a delivery, a String of its own.
        def <<(bytes)
          size = bytes.bytesize
          push(bytes)
          @answers += size
          @shares[-1] += size
          self
        end

        # Appends a delivery, a String of its own.
        def push(bytes)
          @size += bytes.bytesize
          if @last
            @last << bytes
          else
            @chunks << (@last = bytes)
            @shares << 0
          end
          @last = nil if @last.bytesize >= CHUNK
        end

        def empty? = @size.zero?

        # Returns the next bytes, the same until `wrote`.
        def take(max_bytes)
          unless @front
            @front = @chunks.shift or return ""
            @last = nil if @chunks.empty?
          end
          (@sent.zero? && @front.bytesize <= max_bytes) ? @front : @front.byteslice(@sent, max_bytes)
        end

        def wrote(count)
          return if count.zero?
          @size -= count
          @sent += count
          return if @sent < @front.bytesize
          @front = nil
          @sent = 0
          @answers -= @shares.shift
        end
      end
    end
  end
end
