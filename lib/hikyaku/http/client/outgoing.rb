# frozen_string_literal: true

require_relative "../errors"
require_relative "wire"

module Hikyaku
  module HTTP
    class Client
      # What waits to be written to one connection: requests, and the body of one that is read as it goes.
      class Outgoing
        FIRST_PIECE = 3 # requests
        GROWTH = 2
        LARGEST_PIECE = 24
        BODY_PIECE = 65_536
        TLS_RECORD = 16_384
        private_constant :FIRST_PIECE, :GROWTH, :LARGEST_PIECE, :BODY_PIECE, :TLS_RECORD

        def initialize
          @segments = []
          @taken = @given = 0
          @attempted = false
          @rest = nil
          @source = @pipe = @awaited = nil
        end

        # @return [Boolean] whether nothing waits, but perhaps more of a body that is not read yet
        def empty? = @segments.empty?

        # @return [Boolean] whether nothing waits, and nothing is to come
        def idle? = @segments.empty? && @source.nil?

        # @return [Boolean] whether a body is being read
        def reading? = !@source.nil?

        # @return [IO, nil] that has to become readable before there is more of a body
        attr_reader :awaited

        # What is added together is written together.
        #
        # A server that has read whole requests and sees nothing more sends what it has, however little; then TCP keeps its next small packet back
        # until that one is acknowledged (Nagle's algorithm, RFC 9293, section 3.7.4), a whole round trip. nginx with tcp_nopush, as Debian sets
        # it up, is such a server. While it has half a request it waits for the rest: so the last one is left unfinished where more is to come.
        #
        # @param requests [Array<String>]
        # @param unfinished [Boolean] whether half of the last is kept until more is added, or {#finish}
        # @return [Array<Integer>] where each ends in all that is written to the connection
        def add(requests, unfinished: false)
          @segments << "#{take_rest}#{requests.join}"
          keep_half(requests.last) if unfinished
          ends(requests)
        end

        # The same for a long way and a connection that is idle: in pieces that grow, so that the server has something to do while the next comes
        # in on a slow uplink, where a whole packet of requests takes a sixth of a second. Each piece but the last ends within a request.
        #
        # @return [Array<Integer>] as of {#add}
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

        # @return [Boolean] whether half of a request is kept
        def unfinished? = !@rest.nil?

        # Has the rest of what is unfinished written.
        #
        # @return [void]
        def finish
          @segments << take_rest if @rest
        end

        # @param body [#read] of the request that was added last
        # @param url [String] of that request
        # @return [void]
        def read_from(body, url)
          @source = body
          @url = url
          @pipe = pipe_of(body)
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

        # @return [void]
        def clear
          @segments.clear
          @source = @awaited = @rest = nil
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

        # @return [String, nil] nil: there is none, or none yet
        def next_of_body
          return unless @source
          piece = piece_of_body or return
          @given += piece.bytesize
          @segments << piece
          piece
        end

        # Whoever drives may be somebody else: what goes wrong in reading is not to reach him as it is.
        def piece_of_body
          piece = @pipe ? @source.read_nonblock(BODY_PIECE, exception: false) : @source.read(BODY_PIECE)
          @awaited = (@pipe if piece.is_a?(Symbol))
          return if @awaited
          @source = nil if piece.nil? || piece.empty?
          Wire.chunk(piece.to_s.b)
        rescue => error
          @source = @awaited = nil
          raise BodyFailed.new("the body for #{@url} could not be read: #{error.message} (#{error.class})", url: @url)
        end

        # What may have nothing to read yet, and can be waited for. A file always can be read; of what is neither, nobody knows.
        def pipe_of(body)
          return unless body.respond_to?(:read_nonblock) && body.respond_to?(:to_io)
          io = body.to_io
          io if io.is_a?(IO) && !(io.is_a?(File) && io.stat.file?)
        rescue
          nil # then reading says why
        end
      end
    end
  end
end
