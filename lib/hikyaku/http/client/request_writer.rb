# frozen_string_literal: true

require_relative "../errors"
require_relative "../request/pipe"

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

      # Requests as bytes. Each says as little as it may: in a slow uplink it is the requests that take the time.
      module RequestSerializer
        # What is compressed already: to offer codings for it would cost bytes and bring none.
        COMPRESSED = %w[gif png jpg jpeg webp avif ico woff woff2 mp3 mp4 webm ogg zip gz br zst 7z pdf].freeze
        # Whether a body of no bytes is announced: RFC 9110, section 8.6.
        WITH_BODY = %w[POST PUT PATCH].freeze
        private_constant :COMPRESSED, :WITH_BODY

        module_function

        def request(request, settings, route, first:)
          target = route.absolute_form? ? request.address.url : request.address.target
          out = "#{request.method} #{target} HTTP/1.1\r\n"
          out.force_encoding(Encoding::BINARY)
          out << "Host: " << request.address.origin.authority << "\r\n" unless request["host"]
          out << "User-Agent: " << settings.user_agent << "\r\n" if first && settings.user_agent && !request["user-agent"]
          out << "Accept-Encoding: " << settings.codings << "\r\n" if codings?(request, settings)
          credentials = route.absolute_form? && route.credentials
          out << "Proxy-Authorization: " << credentials << "\r\n" if credentials
          request.headers.each { |name, value| out << name << ": " << value << "\r\n" }
          body(out, request)
        end

        def chunk(bytes) = "#{bytes.bytesize.to_s(16)}\r\n".b << bytes << "\r\n"

        def codings?(request, settings)
          settings.codings && !request["accept-encoding"] && !request["range"] && !COMPRESSED.include?(request.address.extension)
        end
        private_class_method :codings?

        def body(out, request)
          case request.body
          when nil then out << (WITH_BODY.include?(request.method) ? "Content-Length: 0\r\n\r\n" : "\r\n")
          when String then out << "Content-Length: #{request.body.bytesize}\r\n\r\n" << request.body
          else out << length(request) << "\r\n"
          end
        end
        private_class_method :body

        # Of a body that is read; among the fields it may stand already.
        def length(request)
          return "Transfer-Encoding: chunked\r\n" unless request.length
          request["content-length"] ? "" : "Content-Length: #{request.length}\r\n"
        end
        private_class_method :length
      end
    end
  end
end
