# frozen_string_literal: true

require "strscan"
require_relative "broken"
require_relative "number"
require_relative "token"

module Hikyaku
  module Codec
    module Reading
      # Reads JSON as {MessagePack} reads its bytes: token by token, numbers as they stand there, keys as often as they come, and up to the place where it is
      # broken. Several values may stand behind each other. RFC 8259.
      class Json
        MAX_DEPTH = 100_000
        BLANK = /[ \t\r\n]+/n
        NUMBER = /-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?/n
        WORDS = {"null" => [:nil, nil], "true" => [:boolean, true], "false" => [:boolean, false]}.freeze
        PLAIN = /[^"\\\x00-\x1f]++/n
        ESCAPES = {"b" => "\b", "f" => "\f", "n" => "\n", "r" => "\r", "t" => "\t", "\"" => "\"", "\\" => "\\", "/" => "/"}.transform_values(&:b).freeze
        PAIR = /\\u([dD][89abAB]\h\h)\\u([dD][c-fC-F]\h\h)/n
        CLOSING = {array: "]", map: "}"}.freeze
        Container = Struct.new(:kind, :state)
        private_constant :MAX_DEPTH, :BLANK, :NUMBER, :WORDS, :PLAIN, :ESCAPES, :PAIR, :CLOSING, :Container

        def initialize(bytes, max_depth: MAX_DEPTH)
          @scanner = StringScanner.new(bytes.b)
          @scanner.skip(/\xEF\xBB\xBF/n) # a byte order mark, RFC 8259, section 8.1
          @max_depth = max_depth
          @open = []
          @between = false
        end

        def depth = @open.size

        def offset = @scanner.pos

        def next
          blank = @scanner.skip(BLANK)
          return top(blank) if @open.empty?
          container = @open.last
          case container.state
          when :first, :more then ended(container) || entry(container)
          when :value
            container.state = :more
            value
          end
        end

        private

        def top(blank)
          return if @scanner.eos?
          expected("white space between two values") if @between && blank.nil? && !@scanner.check(/["\[{]/n)
          @between = true
          value
        end

        def ended(container)
          return unless @scanner.skip((container.kind == :array) ? /\]/n : /\}/n)
          @open.pop
          Token.new(:end, nil, @scanner.pos, container.kind)
        end

        def entry(container)
          if container.state == :more
            @scanner.skip(/,/n) || expected("a comma or #{CLOSING[container.kind]}")
            @scanner.skip(BLANK)
          end
          container.state = :more
          return value if container.kind == :array
          key(container)
        end

        def key(container)
          expected("a key in quotes") unless @scanner.check(/"/n)
          key = string
          @scanner.skip(BLANK)
          @scanner.skip(/:/n) || expected("a colon")
          container.state = :value
          key
        end

        def value
          offset = @scanner.pos
          case @scanner.check(/./mn)
          when "\"" then string
          when "[" then enter(:array)
          when "{" then enter(:map)
          when /[-0-9]/n then Token.new(:number, @scanner.scan(NUMBER) || expected("a number"), offset, "number")
          else
            word = @scanner.scan(/null|true|false/n) || expected("a value")
            Token.new(*WORDS.fetch(word), offset, word)
          end
        end

        def enter(kind)
          raise Broken.new(@scanner.pos, "this begins inside #{Number.text(@max_depth)} arrays and maps, and deeper is not read") if @open.size >= @max_depth
          @open << Container.new(kind, :first)
          Token.new(kind, nil, @scanner.pos, kind.to_s).tap { @scanner.pos += 1 }
        end

        def string
          offset = @scanner.pos
          @scanner.pos += 1
          text = String.new(encoding: Encoding::BINARY)
          until @scanner.skip(/"/n)
            plain = @scanner.scan(PLAIN)
            text << (plain || escape)
          end
          Token.new(:string, text, offset, "string")
        rescue Broken => error
          raise error if text.empty?
          raise Broken.new(error.offset, error.message[/: (.*)/m, 1], Token.new(:string, text, offset, "string"))
        end

        def escape
          if @scanner.scan(PAIR)
            [0x10000 + ((@scanner[1].hex - 0xd800) << 10) + (@scanner[2].hex - 0xdc00)].pack("U").b
          elsif @scanner.scan(/\\u(\h{4})/n)
            [@scanner[1].hex].pack("U").b
          elsif @scanner.scan(%r{\\([bfnrt"\\/])}n)
            ESCAPES.fetch(@scanner[1])
          else
            expected(@scanner.check(/\\/n) ? "an escape that JSON knows" : "the rest of a string, with control characters escaped")
          end
        end

        def expected(what)
          there = @scanner.eos? ? "the body ends" : format("0x%02x is there", @scanner.string.getbyte(@scanner.pos))
          raise Broken.new(@scanner.pos, "expected #{what}, but #{there}")
        end
      end
    end
  end
end
