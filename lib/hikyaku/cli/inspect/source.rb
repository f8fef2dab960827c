# frozen_string_literal: true

require_relative "../../codec/reading"
require_relative "../../http/content_coding"
require_relative "../command"

module Hikyaku
  module CLI
    class Inspect < Command
      # Where a body comes from: pieces of bytes, with what is said of them. Its codings are undone here, so that it is known how much came.
      class Source
        URL = %r{\Ahttps?://}i
        # First bytes that say which coding it is.
        MAGIC = {"\x1f\x8b\x08" => "gzip", "\x28\xb5\x2f\xfd" => "zstd"}.transform_keys(&:b).freeze
        PIECE = 65_536
        STEP = 4_096
        # Seconds without a byte, in a stream on which perhaps nothing happens.
        QUIET = 86_400
        private_constant :URL, :MAGIC, :PIECE, :STEP, :QUIET

        class << self
          def open(place, stdin:, headers:, max_bytes:, timeout: nil, &block)
            return open_url(place, headers, max_bytes, timeout, &block) if place.match?(URL)
            return look(new(place, pieces_of(stdin, place), max_bytes: max_bytes), &block) if place == "-"
            file = readable(place) { File.open(place, "rb") }
            begin
              look(new(place, pieces_of(file, place), max_bytes: max_bytes, coding: ("br" if place.end_with?(".br"))), &block)
            ensure
              file.close
            end
          end

          private

          def open_url(url, headers, max_bytes, timeout, &block)
            require_relative "../../http/client"
            client = HTTP::Client.new(decode: false, cache: false, memory: nil, timeouts: {read: QUIET})
            answer = asked { client.open(url, headers: offered(headers), timeout: timeout) }
            answer.status
            look(new(HTTP::Address.parse(url).url, answer, max_bytes: max_bytes, answer: answer, coding: answer["content-encoding"]), &block)
          rescue HTTP::RequestFailed => error
            raise Failed, error.message
          ensure
            answer&.close
            client&.close
          end

          # Errors of what was given, as of a field that has a line break.
          def asked
            yield
          rescue ArgumentError => error
            raise UsageError, error.message
          end

          def look(source)
            yield source
          rescue HTTP::ContentCoding::Corrupt, HTTP::ContentCoding::TooLarge, HTTP::ContentCoding::Unsupported => error
            raise Failed, "#{source.place}: #{error.message}"
          end

          # Not of what is written elsewhere.
          def readable(place)
            yield
          rescue SystemCallError => error
            raise Failed, "#{place} cannot be read: #{error.message[/\A[^@(]+/].strip.downcase}"
          end

          def offered(headers)
            return headers if headers.any? { |name, _| name.casecmp?("accept-encoding") }
            [["accept-encoding", HTTP::ContentCoding.accepted], *headers]
          end

          def pieces_of(io, place)
            io.binmode if io.respond_to?(:binmode)
            Enumerator.new do |pieces|
              loop { pieces << readable(place) { io.readpartial(PIECE) } }
            rescue EOFError
              nil
            end
          end
        end

        attr_reader :place
        attr_reader :came
        attr_reader :coding

        def initialize(place, pieces, max_bytes:, answer: nil, coding: nil)
          @place = place
          @pieces = pieces
          @max_bytes = max_bytes
          @answer = answer
          @coding = coding
          @came = 0
        end

        def media_type = @answer && @answer["content-type"]

        def refusal = ("#{@place}: #{@answer.status}" if @answer && !@answer.ok?)

        def live? = !!@answer && @answer["content-length"].nil? && @answer["x-accel-buffering"].to_s.casecmp?("no")

        def check
          type = media_type.to_s[/\A[^;\s]*/].downcase
          return if type.empty? || %w[application/octet-stream text/plain].include?(type) || Codec::Reading.known?(type)
          advice = (type == "text/event-stream") ? "hikyaku subscribe shows it" : "--type msgpack or --type json looks at it all the same"
          raise Failed, "#{@place}: #{@answer.status}, and #{type} is neither MessagePack nor JSON: #{advice}"
        end

        def body
          @body ||= String.new(encoding: Encoding::BINARY).tap do |body|
            each_piece(most: @max_bytes) do |piece|
              body << piece
              too_long! if body.bytesize > @max_bytes
            end
          end
        rescue HTTP::ContentCoding::TooLarge
          too_long!
        end

        def each_piece(most: nil)
          decoder = nil
          @pieces.each do |piece|
            if @came.zero?
              @coding ||= (MAGIC.find { |magic, _| piece.start_with?(magic) }&.last unless @answer)
              decoder = HTTP::ContentCoding.decoder(@coding.to_s.split(","), max_bytes: most)
            end
            @came += piece.bytesize
            undone(piece, decoder) { |bytes| yield bytes unless bytes.empty? }
          end
          rest = decoder&.finish.to_s
          yield rest unless rest.empty?
        end

        private

        # A little may become very much: no more of it is there at once than becomes of this much.
        def undone(piece, decoder)
          return yield(piece) unless decoder
          (0...piece.bytesize).step(STEP) { |at| yield decoder << piece.byteslice(at, STEP) }
        end

        def too_long! = raise(Failed, "#{@place} is longer than #{@max_bytes} bytes: --max-bytes says how much is read")
      end
      private_constant :Source
    end
  end
end
