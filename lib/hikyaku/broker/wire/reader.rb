# frozen_string_literal: true

require_relative "parser"
require_relative "type"

module Hikyaku
  module Broker
    module Wire
      # Splits a stream of bytes into frames, however the bytes arrive. It buffers one incomplete frame at most.
      #
      # The reader checks the shape of a frame, and not its values: the engine refuses a request with a priority of 12 alone.
      class Reader
        attr_accessor :max_frame

        def initialize(from:, max_frame: 1024 * 1024)
          @types, @parser = (from == :client) ? [Type::OF_CLIENT, ClientParser.new] : [Type::OF_BROKER, BrokerParser.new]
          @from = from
          @max_frame = max_frame
          @buffer = "".b
          @stopped = false
        end

        def read(bytes)
          return if @stopped
          buffer = gather(bytes)
          at = 0
          while (left = buffer.bytesize - at) >= Parser::HEADER_BYTES
            size, type, flags, subscription, id = buffer.unpack("VCCvQ<", offset: at)
            check(size, type, id)
            break if left < size
            frame = @parser.read(buffer, at, size, type, flags, subscription, id)
            at += size
            yield frame, size
            return if @stopped
          end
          keep(buffer, at)
        rescue ProtocolError
          stop
          raise
        end

        # Discards what is buffered, and everything that follows.
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
          raise ProtocolError.new(Code::MALFORMED, "a frame has 16 bytes or more, not #{size}", id: 0) if size < Parser::HEADER_BYTES
          unless @types.include?(type)
            raise ProtocolError.new(Code::UNEXPECTED, "the #{@from} may not send #{Type::NAMES[type]}", id: id) if Type::NAMES.key?(type)
            raise ProtocolError.new(Code::MALFORMED, "unknown type of frame: #{type}", id: id)
          end
          raise ProtocolError.new(Code::TOO_BIG, "a frame of #{size} bytes exceeds the limit of #{@max_frame}", id: id) if size > @max_frame
        end
      end
    end
  end
end
