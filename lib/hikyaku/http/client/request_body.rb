# frozen_string_literal: true

require_relative "../errors"
require_relative "../request/pipe"
require_relative "request_serializer"

module Hikyaku
  module HTTP
    class Client
      # The body of one request, read as it is written: in chunks, or as many bytes as were announced.
      #
      # The last bytes are held back until it is sure that no more follow them: the server never has a whole request that is not the caller's.
      class RequestBody
        PIECE = 65_536 # bytes
        private_constant :PIECE

        attr_reader :awaited

        def initialize(body, url, length)
          @body = body
          @url = url
          @length = @left = length
          @pipe = Request::Pipe.of(body)
          @awaited = nil
          @ended = false
        end

        def ended? = @ended

        def nothing? = @length == 0

        def next
          bytes = (@left == 0) ? "" : read([@left, PIECE].compact.min)
          return unless bytes
          @left ? counted(bytes) : chunk(bytes)
        end

        private

        def chunk(bytes)
          @ended = bytes.empty?
          RequestSerializer.chunk(bytes)
        end

        def counted(bytes)
          @left -= bytes.bytesize
          refuse("ended after #{@length - @left} of") if bytes.empty? && @left.positive?
          refuse("has more than") if @left.negative? || (@left.zero? && more?)
          @ended = @left.zero?
          bytes unless bytes.empty?
        end

        # A pipe may never say that it has ended: what it has is what counts.
        def more?
          bytes = read(1)
          @awaited = nil
          !bytes.to_s.empty?
        end

        # Whoever drives may be somebody else: what goes wrong in reading is not to reach him as it is.
        def read(count)
          bytes = @pipe ? @body.read_nonblock(count, exception: false) : @body.read(count)
          @awaited = (@pipe || Request::Pipe.of(@body) if bytes.is_a?(Symbol))
          bytes.to_s.b unless @awaited
        rescue => error
          @awaited = nil
          raise BodyFailed.new("the body for #{@url} could not be read: #{error.message} (#{error.class})", url: @url)
        end

        def refuse(what)
          raise BodyFailed.new("the body for #{@url} #{what} the #{@length} bytes that were announced, by its size or the caller's Content-Length, and was broken off", url: @url)
        end
      end
    end
  end
end
