# frozen_string_literal: true

require_relative "../codec/reading"
require_relative "command"
require_relative "../http/content_coding"

module Hikyaku
  module CLI
    # `hikyaku inspect`
    class Inspect < Command
      summary "Show a body of MessagePack or JSON as readable text, also a broken one, and how large it is in other forms."
      usage "hikyaku inspect [OPTION…] URL|FILE|-"
      examples(
        "hikyaku inspect https://api.example.com/items",
        "hikyaku inspect --sizes --header 'Authorization: Bearer TOKEN' https://api.example.com/items",
        "hikyaku inspect --offsets body.msgpack.gz",
        "hikyaku inspect --count 10 'http://127.0.0.1:3030/.well-known/mercure?match=*'",
        "curl -s https://api.example.com/items | hikyaku inspect -"
      )

      ACCEPT = "application/vnd.msgpack, application/json;q=0.9, */*;q=0.1"
      OPERANDS = "\n  URL    is asked for MessagePack, then JSON\n  FILE   may be compressed: its first bytes say so, or its name (.br)\n" \
        "  -      is the standard input\n\nWhat:"
      LINES = "Show each of several values in a line, as it comes; so are streams shown that nobody may keep back (X-Accel-Buffering: no), as a hub's are"
      TYPES = {"msgpack" => :msgpack, "json" => :json}.freeze
      MAX_BYTES = 16_777_216
      SECONDS = /\A\d{1,6}(?:\.\d{1,6})?\z/
      private_constant :ACCEPT, :OPERANDS, :LINES, :TYPES, :MAX_BYTES, :SECONDS

      private

      def operands = %w[URL|FILE|-]

      def options(parser)
        @headers = []
        @accept = ACCEPT
        @max_bytes = MAX_BYTES
        parser.separator(OPERANDS)
        value_option(parser, "--accept TYPE", "Ask a URL for this (#{ACCEPT})") { |text| @accept = text }
        value_option(parser, "--header FIELD", "As 'Name: value', to send with it; may be repeated") { |text| @headers << field(text) }
        value_option(parser, "--type TYPE", "msgpack or json, whatever is said of the body") { |text| @type = type(text) }
        value_option(parser, "--max-bytes N", "Read no more of a body, or of a value of a stream (#{MAX_BYTES})") { |text| @max_bytes = count("--max-bytes", text) }
        value_option(parser, "--timeout SECONDS", "For an answer with all of its body") { |text| @timeout = seconds(text) }
        output_options(parser)
      end

      def output_options(parser)
        parser.separator("\nOutput:")
        parser.on("--lines", *wrap(LINES)) { @lines = true }
        value_option(parser, "--count N", "The same, and end after so many values") { |text| @count = count("--count", text) }
        parser.on("--offsets", *wrap("Show the byte at which each value begins, and its form")) { @offsets = true }
        parser.on("--all", *wrap("Show everything, however long")) { @all = true }
        parser.on("--sizes", *wrap("Show how large it is: as it came, as JSON and as MessagePack, plain and in each coding")) { @sizes = true }
        parser.on("--raw", *wrap("Write the body itself, its codings undone")) { @raw = true }
      end

      def call(place = nil)
        raise UsageError, "give a URL, a FILE or -; see #{manual}" if place.to_s.empty?
        several = [@sizes, @raw, @offsets, @lines || @count].count(&:itself) > 1
        raise UsageError, "give one of --sizes, --raw, --offsets, and none with --lines or --count" if several
        Source.open(place, stdin: stdin, headers: headers, max_bytes: @max_bytes, timeout: @timeout) { |source| look_at(source) }
      end

      def look_at(source)
        return write(source) if @raw
        source.check unless @type
        if @lines || @count || (source.live? && !@sizes && !@offsets)
          follow(source)
        else
          @sizes ? sizes(source) : show(source)
        end
        source.refusal ? complain(source.refusal) : 0
      rescue Codec::Reading::Broken => error
        raise Failed, "#{source.place} is broken #{error.message}"
      end

      # What is asked for with `--raw` may be anything.
      def write(source)
        stdout.binmode if stdout.respond_to?(:binmode)
        stdout.write(source.body)
        source.refusal ? complain(source.refusal) : 0
      end

      def show(source)
        shown = Codec::Reading.show(source.body, type: type_of(source), limits: limits, listing: !!@offsets)
        stdout.puts(shown.text) unless shown.text.empty?
        raise shown.broken if shown.broken
        stderr.puts("hikyaku: #{CLI.printable(source.place)}: there is no body") if shown.values.zero?
      end

      def sizes(source)
        require_relative "../codec/reading/sizes"
        sizes = Codec::Reading::Sizes.new(source.body, type: type_of(source), came: source.came, coding: source.coding)
        table(sizes.table)
        stderr.puts("hikyaku: not in other representations: #{CLI.printable(sizes.missing)}") if sizes.missing
      end

      def follow(source)
        lines = Lines.new(limits: limits, max_bytes: @max_bytes, type: @type, media_type: source.media_type)
        left = @count || Float::INFINITY
        show = lambda do |line|
          stdout.puts(line)
          # It is wanted now, not when a buffer is full.
          stdout.flush
          throw :enough unless (left -= 1).positive?
        end
        catch(:enough) do
          source.each_piece { |piece| lines.each_of(piece, &show) }
          lines.finish(&show)
        end
      end

      def type_of(source)
        type = @type || Codec::Reading.type_of(source.body, source.media_type)
        type || raise(Failed, "#{source.place} is neither MessagePack nor JSON, by its first bytes: --type msgpack or --type json looks at it all the same")
      end

      def limits = @all ? Codec::Reading::Printer::EVERYTHING : Codec::Reading::Printer::USUAL

      def table(rows)
        widths = rows.transpose.map { |column| column.map(&:size).max }
        rows.each do |row|
          name, *cells = row.zip(widths)
          stdout.puts([name.first.ljust(name.last), *cells.map { |cell, width| cell.rjust(width) }].join("  ").rstrip)
        end
      end

      def complain(text)
        stderr.puts("hikyaku: #{CLI.printable(text)}")
        1
      end

      # What is said with --header stands in place of what is sent without.
      def headers = {"accept" => @accept}.reject { |name, _| @headers.any? { |other, _| other.casecmp?(name) } }.to_a + @headers

      def type(text) = TYPES[text] || raise(UsageError, "--type: expected msgpack or json, got #{text.inspect}")

      def field(text)
        name, value = text.split(":", 2)
        raise UsageError, "--header: expected 'Name: value', got #{text[0, 40].inspect}" unless value
        [name.strip, value.strip]
      end

      def count(option, text)
        raise UsageError, "#{option}: expected a whole number, 1 or more, got #{text.inspect}" unless text.match?(/\A[1-9]\d{0,11}\z/)
        text.to_i
      end

      def seconds(text)
        raise UsageError, "--timeout: expected seconds, got #{text.inspect}" unless text.match?(SECONDS) && text.to_f > 0
        text.to_f
      end

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
            require_relative "../http/client"
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

        attr_reader :place, :came, :coding

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

      # Values of a stream, a line each, as they come: MessagePack back to back, or JSON in lines.
      class Lines
        def initialize(limits:, max_bytes:, type: nil, media_type: nil)
          @limits = limits
          @most = limits.items || Float::INFINITY
          @max_bytes = max_bytes
          @type = type
          @media_type = media_type
          @reader = Codec::Reading::MessagePack.new(max_bytes: max_bytes)
          @json = String.new(encoding: Encoding::BINARY)
          begin_line
        end

        def each_of(piece, &block)
          @type ||= Codec::Reading.type_of(piece, @media_type) || :msgpack
          return json(piece, &block) if @type == :json
          @reader << piece
          tokens(&block)
        end

        def finish(&block)
          return json("\n", &block) if @type == :json && !@json.empty?
          @reader.finish
          tokens(&block)
        end

        private

        def tokens
          while (token = @reader.next)
            too_many! if (@items += 1) > @most
            @printer << token
            next unless @reader.depth.zero?
            @printer.finish
            @text << " …" if @printer.full?
            yield @text
            begin_line
          end
        end

        # To find the end of such a value takes long, and nothing is shown in the meantime.
        def too_many! = raise(Failed, "a value has more than #{Codec::Reading::Number.text(@most)} items: --all reads on")

        def begin_line
          @items = 0
          @text = String.new(encoding: Encoding::UTF_8)
          @printer = Codec::Reading::Printer.new(@text, width: nil, limits: @limits)
        end

        def json(piece)
          @json << piece
          while (line = @json.slice!(/\A[^\n]*+\n/n))
            next if line.strip.empty?
            shown = Codec::Reading.show(line, type: :json, width: nil, limits: @limits)
            raise shown.broken if shown.broken
            yield shown.text
          end
          raise Failed, "a line is longer than #{@max_bytes} bytes: --max-bytes says how much is read" if @json.bytesize > @max_bytes
        end
      end
      private_constant :Lines
    end
  end
end
