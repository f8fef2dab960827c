# frozen_string_literal: true

require_relative "of_broker"
require_relative "of_client"
require_relative "type"
require_relative "violation"

module Hikyaku
  module Broker
    module Wire
      # Bytes in, frames out: the same frames however the bytes are cut. It keeps no more than one frame that is not whole.
      #
      # What it holds a frame to is its shape: lengths, flags and what has to be 0. Whether a value is allowed (a priority
      # of 12, say) is for whoever carries out the request, who can refuse it alone.
      class Reader
        attr_accessor :max_frame

        def initialize(from:, max_frame: 1024 * 1024)
          @types, @frames = (from == :client) ? [Type::OF_CLIENT, OfClient] : [Type::OF_BROKER, OfBroker]
          @from = from
          @max_frame = max_frame
          @buffer = "".b
          @stopped = false
        end

        def read(bytes)
          return if @stopped
          buffer = gather(bytes)
          at = 0
          while (left = buffer.bytesize - at) >= HEADER_BYTES
            size, type, flags, subscription, id = buffer.unpack("VCCvQ<", offset: at)
            check(size, type, id)
            break if left < size
            frame = @frames.read(buffer, at, size, type, flags, subscription, id)
            at += size
            yield frame, size
            return if @stopped
          end
          keep(buffer, at)
        rescue Violation
          stop
          raise
        end

        # Reads nothing any more, not even what was given already.
        def stop
          @stopped = true
          @buffer = "".b
        end

        def kept = @buffer.bytesize

        private

        def gather(bytes)
          bytes = bytes.b unless bytes.encoding == Encoding::BINARY
          @buffer.empty? ? bytes : @buffer << bytes
        end

        def keep(buffer, at)
          if at == buffer.bytesize
            @buffer.clear unless @buffer.empty?
          elsif at.positive? || !buffer.equal?(@buffer)
            @buffer = buffer.byteslice(at, buffer.bytesize - at) + ""
          end
        end

        def check(size, type, id)
          raise Violation.new(Code::MALFORMED, "a frame has 16 bytes at least, not #{size}", id: 0) if size < HEADER_BYTES
          unless @types.include?(type)
            raise Violation.new(Code::UNEXPECTED, "#{Type::NAMES[type]} does not come from the #{@from}", id: id) if Type::NAMES.key?(type)
            raise Violation.new(Code::MALFORMED, "there is no frame of type #{type}", id: id)
          end
          raise Violation.new(Code::TOO_BIG, "a frame of #{size} bytes is larger than #{@max_frame}, which was agreed on", id: id) if size > @max_frame
        end
      end
    end
  end
end
