# frozen_string_literal: true

require_relative "../errors"
require_relative "wire"

module Hikyaku
  module HTTP
    class Client
      # What waits to be written to one connection: requests, and the body of one that is read as it goes.
      class Outgoing
        SEGMENT = 1_300 # bytes of requests that surely go in one packet
        FIRST_REQUESTS = 2 # in the first packet, so that the server begins early
        BODY_PIECE = 65_536
        TLS_RECORD = 16_384
        private_constant :SEGMENT, :FIRST_REQUESTS, :BODY_PIECE, :TLS_RECORD

        def initialize
          @segments = []
          @taken = @given = 0
          @attempted = false
          @source = nil
        end

        # @return [Boolean] whether nothing waits, but perhaps more of a body that is not read yet
        def empty? = @segments.empty?

        # @return [Boolean] whether a body is being read
        def reading? = !@source.nil?

        # What is added together is written together.
        #
        # @param requests [Array<String>]
        # @return [Array<Integer>] where each ends in all that is written to the connection
        def add(requests)
          @segments << requests.join
          ends(requests)
        end

        # The same for a long way: whole requests, as many as go into a packet.
        #
        # @param early [Boolean] whether the first packet is to be short, so that the server begins early
        # @return [Array<Integer>]
        def add_in_packets(requests, early:)
          positions = ends(requests)
          first, rest = early ? [requests.first(FIRST_REQUESTS), requests.drop(FIRST_REQUESTS)] : [[], requests]
          @segments << first.join if early
          pack(rest)
          positions
        end

        # @param body [#read] of the request that was added last
        # @param url [String] of that request
        # @return [void]
        def read_from(body, url)
          @source = body
          @url = url
        end

        # Writes as much as is taken.
        #
        # @param io [#write_nonblock]
        # @return [Boolean] whether anything was taken
        # @raise [BodyFailed]
        def write(io)
          moved = false
          while (bytes = @segments.first || next_of_body)
            count = io.write_nonblock(bytes, exception: false)
            if count.is_a?(Symbol)
              @attempted = io.respond_to?(:pending)
              return moved
            end
            @attempted = false
            moved = true
            @taken += count
            (count == bytes.bytesize) ? @segments.shift : @segments[0] = bytes.byteslice(count..)
          end
          moved
        end

        # @param position [Integer] where a request ends: what comes after it is not written any more
        # @return [void]
        def cut(position)
          left = (position - @taken).clamp(0..)
          # TLS wants to be given again the record that it could not write.
          left = left.clamp([@segments.first.bytesize, TLS_RECORD].min..) if @attempted && @segments.any?
          kept = []
          while left.positive? && (bytes = @segments.shift)
            kept << bytes.byteslice(0, left)
            left -= bytes.bytesize
          end
          @segments = kept
        end

        # @return [void]
        def clear
          @segments.clear
          @source = nil
        end

        private

        def ends(requests) = requests.map { |bytes| @given += bytes.bytesize }

        def pack(requests)
          packed = nil
          requests.each do |bytes|
            if packed && packed.bytesize + bytes.bytesize <= SEGMENT
              packed << bytes
            else
              @segments << (packed = +bytes)
            end
          end
        end

        def next_of_body
          return unless @source
          piece = piece_of_body
          @given += piece.bytesize
          @segments << piece
          piece
        end

        # Whoever drives may be somebody else: what goes wrong in reading is not to reach him as it is.
        def piece_of_body
          piece = @source.read(BODY_PIECE)
          @source = nil if piece.nil? || piece.empty?
          Wire.chunk(piece.to_s.b)
        rescue => error
          @source = nil
          raise BodyFailed.new("the body for #{@url} could not be read: #{error.message} (#{error.class})", url: @url)
        end
      end
    end
  end
end
