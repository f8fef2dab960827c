# frozen_string_literal: true

require_relative "broken"
require_relative "forms"
require_relative "number"
require_relative "token"

module Hikyaku
  module Codec
    module Reading
      # Reads MessagePack for people: token by token, piece by piece as the bytes come, values back to back as many as there are. It believes no header: a count
      # or a length costs nothing before the bytes are there, nesting uses no stack, and what is broken is read up to the place where it broke.
      #
      #     reader = MessagePack.new
      #     reader << "\x92\xa1a".b
      #     reader.next      # => an array of 2
      #     reader.next      # => "a"
      #     reader.next      # => nil: more bytes are needed
      #     reader.finish
      #     reader.next      # raises Broken: at byte 3: expected entry 2 of 2 of the array that begins at byte 0, but the body ends
      class MessagePack
        # Arrays and maps in one another.
        MAX_DEPTH = 100_000
        # Bytes that were read and are still kept.
        KEPT = 65_536
        Container = Struct.new(:kind, :count, :left, :offset)
        private_constant :MAX_DEPTH, :KEPT, :Container

        def initialize(max_depth: MAX_DEPTH, max_bytes: nil)
          @max_depth = max_depth
          @max_bytes = max_bytes
          @buffer = String.new(encoding: Encoding::BINARY)
          @base = @at = @begun = 0
          @open = []
          @ended = false
        end

        def <<(bytes)
          if @at > KEPT
            @buffer = @buffer.byteslice(@at..)
            @base += @at
            @at = 0
          end
          @buffer << bytes.b
          self
        end

        # Says that nothing more comes.
        def finish
          @ended = true
          self
        end

        def offset = @base + @at

        def depth = @open.size

        def next
          return close if @open.any? && @open.last.left.zero?
          @begun = offset if @open.empty?
          return read(@buffer.getbyte(@at)) if there?(1)
          raise Broken.new(offset, "expected #{wanted}, but the body ends") if @ended && @open.any?
        end

        private

        def there?(count) = @buffer.bytesize - @at >= count

        def close
          container = @open.pop
          Token.new(:end, nil, offset, container.kind)
        end

        def read(byte)
          form = FORMS[byte] or raise Broken.new(offset, "expected #{wanted}, but 0xc1 begins no value")
          number = form.immediate
          unless form.width.zero?
            return lacking(form, 1 + form.width, 1 + form.width) unless there?(1 + form.width)
            number = @buffer.unpack1(form.directive, offset: @at + 1)
          end
          case form.kind
          when :array, :map then enter(form, number)
          when :string, :binary then body(form, number, 1 + form.width)
          when :extension then body(form, number, 2 + form.width)
          else token(form, number, 1 + form.width)
          end
        end

        def body(form, length, header)
          if @max_bytes && offset - @begun + header + length > @max_bytes
            raise Broken.new(offset, "a #{form.name} of #{Number.text(length)} bytes begins here, and the value may have #{Number.text(@max_bytes)} in all")
          end
          return lacking(form, header + length, header) unless there?(header + length)
          bytes = @buffer.byteslice(@at + header, length)
          value = (form.kind == :extension) ? [@buffer.unpack1("c", offset: @at + header - 1), bytes] : bytes
          token(form, value, header + length)
        end

        def enter(form, count)
          raise Broken.new(offset, "a #{form.name} begins inside #{Number.text(@max_depth)} others, and deeper is not read") if @open.size >= @max_depth
          opened = token(form, count, 1 + form.width)
          @open << Container.new(form.kind, count, (form.kind == :map) ? 2 * count : count, opened.offset)
          opened
        end

        def token(form, value, length)
          raise Broken.new(offset, "the value that begins at byte #{Number.text(@begun)} is longer than #{Number.text(@max_bytes)} bytes") if too_long?(length)
          made = Token.new(form.kind, value, offset, form.name)
          @at += length
          @open.last.left -= 1 if @open.any?
          made
        end

        def too_long?(length) = @max_bytes && offset - @begun + length > @max_bytes

        def lacking(form, length, header)
          return unless @ended
          there = @buffer.bytesize - @at
          expected = "expected #{Number.text(length)} bytes of the #{form.name} that begins at byte #{Number.text(offset)}"
          raise Broken.new(@base + @buffer.bytesize, "#{expected}, but there are #{Number.text(there)}", begun(form, header, there))
        end

        # As much of a text as there is.
        def begun(form, header, there)
          Token.new(form.kind, @buffer.byteslice(@at + header, there - header), offset, form.name) if %i[string binary].include?(form.kind) && there > header
        end

        # What would come next, in words.
        def wanted
          container = @open.last or return "a value"
          place = "of #{Number.text(container.count)} of the #{container.kind} that begins at byte #{Number.text(container.offset)}"
          return "entry #{Number.text(container.count - container.left + 1)} #{place}" if container.kind == :array
          "#{container.left.even? ? "key" : "the value of key"} #{Number.text(container.count - (container.left - 1) / 2)} #{place}"
        end
      end
    end
  end
end
