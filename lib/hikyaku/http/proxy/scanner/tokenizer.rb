# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # A start tag with encoded attribute values: a value.
        class Tag
          # The tokenizer drops other attributes.
          WANTED = %w[as background charset color content crossorigin disabled encoding event face for href http-equiv imagesizes imagesrcset
            language loading media name nomodule nonce poster referrerpolicy rel size sizes src srcset type].to_h { |name| [name, true] }.freeze

          attr_reader :name, :values, :stop

          def initialize(name, values, self_closing:, readable:, stop:)
            @name = name
            @values = values
            @self_closing = self_closing
            @readable = readable
            @stop = stop
            freeze
          end

          def self_closing? = @self_closing

          # Whether it is within MAX_TAG.
          def readable? = @readable
        end

        # Extracts tags from bytes, however these are cut: each state consumes what it can, and leaves at most a dozen bytes for the next call.
        #
        #     data ─ "<a" ─► tag_name ─► before_attribute ─► attribute_name ─► after_name ─► before_value ─► a value
        #      │ ▲                        │  ▲  ▲                                 │                            │
        #      │ │                        │  │  └─────────────────────────────────┴────────────────────────────┘
        #      │ └────────── ">" ─────────┘  └── self_closing ◄─ "/"
        #      ├─ "<!--" ─► comment_start ─► comment ─► data         raw_text, script ─ their end tag ─► tag_name
        #      └─ "<!", "<?", "</ " ─► bogus ─► data                 plaintext: for ever
        #
        # HTML Standard, section "Tokenization". The listener decides what follows a start tag, because it depends on the tree.
        class Tokenizer
          MAX_VALUE = 8_192
          MAX_TAG = 65_536
          MAX_NAME = 64
          SPACE = '\t\n\f\r '
          NOT_SPACE = /[^#{SPACE}]/n
          NAME_END = /[#{SPACE}\/>]/n
          ATTRIBUTE_END = /[#{SPACE}\/>=]/n
          UNQUOTED_END = /[#{SPACE}>]/n
          COMMENT_END = /--!?>/n
          BOGUS_END = />/n
          CDATA_END = /\]\]>/n
          RAW = %w[iframe noembed noframes noscript style textarea title xmp].to_h { |name| [name, /<\/#{name}(?=[#{SPACE}\/>])/ni] }.freeze
          # "<!--" in a script changes its end, and "<script" in there changes it again.
          SCRIPT = {
            plain: /<!--|<\/script(?=[#{SPACE}\/>])/ni,
            escaped: /-->|<\/?script(?=[#{SPACE}\/>])/ni,
            double: /-->|<\/script(?=[#{SPACE}\/>])/ni
          }.freeze
          # What each of these may leave: one byte less than its longest match.
          COMMENT_REST = 3
          SCRIPT_REST = 8
          CDATA_REST = 2
          CDATA = "[CDATA["
          private_constant :MAX_NAME, :SPACE, :NOT_SPACE, :NAME_END, :ATTRIBUTE_END, :UNQUOTED_END, :COMMENT_END, :BOGUS_END, :CDATA_END, :RAW, :SCRIPT,
            :COMMENT_REST, :SCRIPT_REST, :CDATA_REST, :CDATA

          def initialize(listener)
            @listener = listener
            @bytes = String.new(encoding: Encoding::BINARY)
            @at = @offset = 0
            @state = :data
          end

          def <<(bytes)
            @offset += @at
            @bytes = @bytes.byteslice(@at, @bytes.bytesize - @at) << bytes.b
            @at = 0
            nil while send(@state)
            self
          end

          private

          # The states. Each returns whether the next one may run; if not, more bytes are needed.

          def data
            @at = @bytes.index("<", @at) || @bytes.bytesize
            case byte(1)
            when nil then nil
            when "!" then declaration
            when "?" then go(:bogus, 2)
            when "/" then end_tag_open
            when /[A-Za-z]/n then begin_tag(1)
            else go(:data, 1)
            end
          end

          def end_tag_open
            case byte(2)
            when nil then nil
            when ">" then go(:data, 3)
            when /[A-Za-z]/n then begin_tag(2, ending: true)
            else go(:bogus, 2)
            end
          end

          def declaration
            return go(:comment_start, 4) if ahead?("--")
            return go(:cdata, 2 + CDATA.bytesize) if ahead?(CDATA) && @listener.cdata?
            rest = @bytes.bytesize - @at - 2
            return if "--".start_with?(slice(2, rest)) || CDATA.start_with?(slice(2, rest))
            go(:bogus, 2)
          end

          # "<!-->" and "<!--->" are complete comments.
          def comment_start
            return go(:data, 1) if byte(0) == ">"
            return go(:comment, 0) if byte(0) && byte(0) != "-"
            return unless byte(1)
            (byte(1) == ">") ? go(:data, 2) : go(:comment, 0)
          end

          def comment = pass(COMMENT_END, COMMENT_REST)

          def bogus = pass(BOGUS_END, 0)

          def cdata = pass(CDATA_END, CDATA_REST)

          def plaintext
            @at = @bytes.bytesize
            nil
          end

          def raw_text
            return unless find(RAW.fetch(@raw), @raw.bytesize + 2)
            begin_tag(2, ending: true)
          end

          def script
            found = find(SCRIPT.fetch(@script), SCRIPT_REST) or return
            case found.downcase
            when "<!--" then script_becomes(:escaped, 2) # Its dashes may also be those of "-->".
            when "-->" then script_becomes(:plain, 3)
            when "<script" then script_becomes(:double, found.bytesize)
            else (@script == :double) ? script_becomes(:escaped, found.bytesize) : begin_tag(2, ending: true)
            end
          end

          def tag_name
            take_until(NAME_END, @name, MAX_NAME) or return
            @name = @name.downcase
            go(:before_attribute, 0)
          end

          def before_attribute
            case skip_space
            when nil then nil
            when ">" then finish_tag
            when "/" then go(:self_closing, 1)
            else begin_attribute
            end
          end

          def self_closing
            return unless byte(0)
            @closing = byte(0) == ">"
            @closing ? finish_tag : go(:before_attribute, 0)
          end

          def attribute_name
            take_until(ATTRIBUTE_END, @attribute, MAX_NAME) or return
            @attribute = @attribute.downcase
            go(:after_name, 0)
          end

          def after_name
            case skip_space
            when nil then nil
            when "=" then go(:before_value, 1)
            else finish_attribute
            end
          end

          def before_value
            case skip_space
            when nil then nil
            when '"' then go(:double_quoted, 1)
            when "'" then go(:single_quoted, 1)
            when ">" then finish_attribute
            else go(:unquoted, 0)
            end
          end

          def double_quoted = take_until('"', @value, MAX_VALUE) && finish_attribute(1)

          def single_quoted = take_until("'", @value, MAX_VALUE) && finish_attribute(1)

          def unquoted = take_until(UNQUOTED_END, @value, MAX_VALUE) && finish_attribute

          # Actions of the states.

          def begin_tag(length, ending: false)
            @began = @offset + @at
            @name = String.new(encoding: Encoding::BINARY)
            @values = {}
            @ending = ending
            @closing = false
            go(:tag_name, length)
          end

          # A leading "=" belongs to the name.
          def begin_attribute
            @attribute = String.new(encoding: Encoding::BINARY)
            @value = String.new(encoding: Encoding::BINARY)
            @attribute << "=" if byte(0) == "="
            go(:attribute_name, @attribute.bytesize)
          end

          def finish_attribute(length = 0)
            if Tag::WANTED.key?(@attribute) && !@values.key?(@attribute)
              @values[@attribute] = (@value.bytesize > MAX_VALUE) ? nil : @value
            end
            go(:before_attribute, length)
          end

          def finish_tag
            @at += 1
            return go(follow, 0) unless @ending
            @listener.end_tag(@name) unless @raw
            @raw = nil
            go(:data, 0)
          end

          def follow
            stop = @offset + @at
            tag = Tag.new(@name.freeze, @values.freeze, self_closing: @closing, readable: stop - @began <= MAX_TAG, stop: stop)
            @raw = @listener.start_tag(tag)
            case @raw
            when nil then :data
            when :plaintext then :plaintext
            when "script" then (@script = :plain) && :script
            else :raw_text
            end
          end

          def script_becomes(state, length)
            @script = state
            go(:script, length)
          end

          def go(state, length)
            @at += length
            @state = state
            true
          end

          def byte(index) = @bytes[@at + index]

          def slice(index, length) = @bytes.byteslice(@at + index, length)

          def ahead?(bytes) = slice(2, bytes.bytesize) == bytes

          def skip_space
            @at = @bytes.index(NOT_SPACE, @at) || @bytes.bytesize
            byte(0)
          end

          # Moves to the match, or else to the last bytes, which may be its beginning.
          def find(pattern, rest)
            found = pattern.match(@bytes, @at)
            @at = found ? found.begin(0) : [@at, @bytes.bytesize - rest].max
            found && found[0]
          end

          def pass(pattern, rest)
            found = find(pattern, rest)
            found && go(:data, found.bytesize)
          end

          # Appends the bytes before the end to `kept`, which grows to at most one byte more than `max`.
          def take_until(stop, kept, max)
            ended = @bytes.index(stop, @at)
            length = (ended || @bytes.bytesize) - @at
            free = max + 1 - kept.bytesize
            kept << slice(0, [length, free].min) if free > 0
            @at += length
            ended
          end
        end
      end
    end
  end
end
