# frozen_string_literal: true

require_relative "../codec/reading"
require_relative "command"

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
        require_relative "inspect/source"
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
        require_relative "inspect/lines"
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
    end
  end
end
