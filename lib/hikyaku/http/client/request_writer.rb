# frozen_string_literal: true

require_relative "request_body"

module Hikyaku
  module HTTP
    class Client
      # What waits to be written to one connection: requests, and the body of one that is read as it goes.
      class RequestWriter
        FIRST_PIECE = 3 # requests
        GROWTH = 2
        LARGEST_PIECE = 24
        TLS_RECORD = 16_384
        private_constant :FIRST_PIECE, :GROWTH, :LARGEST_PIECE, :TLS_RECORD

        def initialize
          @segments = []
          @taken = @given = 0
          @attempted = false
          @rest = nil
          @upload = nil
        end

        def empty? = @segments.empty?

        def idle? = @segments.empty? && @upload.nil?

        def reading? = !@upload.nil?

        def awaited = @upload&.awaited

        # What is added together is written together.
        #
        # A server that has read whole requests and sees nothing more sends what it has, however little; then TCP keeps its next small packet back
        # until that one is acknowledged (Nagle's algorithm, RFC 9293, section 3.7.4), a whole round trip. nginx with tcp_nopush, as Debian sets
        # it up, is such a server. While it has half a request it waits for the rest: so the last one is left unfinished where more is to come.
        def add(requests, unfinished: false)
          @segments << "#{take_rest}#{requests.join}"
          keep_half(requests.last) if unfinished
          ends(requests)
        end

        # The same for a long way and a connection that is idle: in pieces that grow, so that the server has something to do while the next comes
        # in on a slow uplink, where a whole packet of requests takes a sixth of a second. Each piece but the last ends within a request.
        def add_in_pieces(requests, unfinished: false)
          from = 0
          text = requests.join
          cuts(requests).each do |to|
            @segments << text.byteslice(from...to)
            from = to
          end
          @segments << text.byteslice(from..)
          keep_half(requests.last) if unfinished
          ends(requests)
        end

        def unfinished? = !@rest.nil?

        # Has the rest of what is unfinished written.
        def finish
          @segments << take_rest if @rest
        end

        def read_from(upload)
          @upload = upload
        end

        # Writes as much as is taken.
        def write(io)
          moved = false
          next_of_body if @upload&.nothing?
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

        def cut(position)
          finish
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

        def clear
          @segments.clear
          @upload = @rest = nil
        end

        private

        def take_rest = @rest.tap { @rest = nil }

        def keep_half(request)
          text = @segments.last
          kept = request.bytesize / 2
          @rest = text.byteslice(-kept, kept)
          (text.bytesize == kept) ? @segments.pop : @segments[-1] = text.byteslice(0, text.bytesize - kept)
        end

        def ends(requests) = requests.map { |bytes| @given += bytes.bytesize }

        # In the midst of requests: of the fourth, the tenth …
        def cuts(requests)
          size, taken, places = FIRST_PIECE, 0, []
          while size <= LARGEST_PIECE && taken + size < requests.size
            taken += size
            places << requests.first(taken).sum(&:bytesize) + requests[taken].bytesize / 2
            size *= GROWTH
          end
          places
        end

        def next_of_body
          return unless @upload
          piece = @upload.next
          @upload = nil if @upload.ended?
          return unless piece
          @given += piece.bytesize
          @segments << piece
          piece
        rescue BodyFailed
          @upload = nil
          raise
        end
      end
    end
  end
end
