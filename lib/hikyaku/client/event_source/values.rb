# frozen_string_literal: true

require_relative "errors"

module Hikyaku
  class EventSource
    # Cuts a row of MessagePack values apart, however its bytes come. It looks at first bytes, lengths and counts only: nothing is made of a
    # length before so many bytes are there, and what is longer than allowed is refused as soon as its length is.
    #
    #     values = Values.new(max_bytes: 100)
    #     values << "\x93\xA1a"
    #     values.shift             # => nil: there are two more to come of the array
    #     values << "\xC0\xA0\xC3"
    #     values.shift             # => "\x93\xA1a\xC0\xA0"
    #
    # https://github.com/msgpack/msgpack/blob/master/spec.md
    class Values
      # In one another. An event has one level.
      MOST_LEVELS = 32
      # What a first byte says: how many bytes the head has, with it; how the length or count in it is read, or what that is; how many values
      # follow for each of the count, none where it is a length; how many bytes follow besides.
      Head = Struct.new(:bytes, :directive, :count, :values, :besides)
      private_constant :MOST_LEVELS, :Head

      HEADS = begin
        plain = ->(length) { Head.new(1, nil, length, 0, 0) }
        counted = ->(first, values, besides, sizes) { sizes.each_with_index.map { |(size, directive), index| [first + index, Head.new(1 + size, directive, nil, values, besides)] } }
        lengths = [[1, "C"], [2, "n"], [4, "N"]]
        heads = Array.new(256) { plain[0] }
        heads[0xc1] = nil
        (0..15).each { |count| heads[0x80 + count], heads[0x90 + count] = Head.new(1, nil, count, 2, 0), Head.new(1, nil, count, 1, 0) }
        (0..31).each { |length| heads[0xa0 + length] = plain[length] }
        {0xca => 4, 0xcb => 8, 0xcc => 1, 0xcd => 2, 0xce => 4, 0xcf => 8, 0xd0 => 1, 0xd1 => 2, 0xd2 => 4, 0xd3 => 8,
         0xd4 => 2, 0xd5 => 3, 0xd6 => 5, 0xd7 => 9, 0xd8 => 17}.each { |first, length| heads[first] = plain[length] }
        [counted[0xc4, 0, 0, lengths], counted[0xc7, 0, 1, lengths], counted[0xd9, 0, 0, lengths], counted[0xdc, 1, 0, lengths.drop(1)],
          counted[0xde, 2, 0, lengths.drop(1)]].flatten(1).each { |first, head| heads[first] = head }
        heads.freeze
      end
      private_constant :HEADS

      def initialize(max_bytes:)
        @max_bytes = max_bytes
        @bytes = String.new(encoding: Encoding::BINARY)
        @at = 0
        begin_at(0)
      end

      def <<(bytes)
        @bytes << bytes.b
        self
      end

      def shift
        nil while @open.any? && step
        return forget if @open.any? || @at > @bytes.bytesize
        value = @bytes.byteslice(@start, @at - @start)
        begin_at(@at)
        value
      end

      private

      def begin_at(at)
        @start = at
        # How many values are still to come: level by level, and in all.
        @open = [1]
        @due = 1
      end

      # What was given is kept no longer.
      def forget
        return if @start.zero?
        @bytes = @bytes.byteslice(@start, @bytes.bytesize)
        @at -= @start
        @start = 0
        nil
      end

      # Over the next head, and the bytes that belong to it, which may not be there yet.
      def step
        first = @bytes.getbyte(@at) or return false
        head = HEADS[first] or raise Malformed, "the stream is not MessagePack: 0xC1 begins no value"
        return false if @at + head.bytes > @bytes.bytesize
        count = head.directive ? @bytes.unpack1(head.directive, offset: @at + 1) : head.count
        @at += head.bytes + head.besides
        @at += count if head.values.zero?
        enter(count * head.values)
      end

      # Each value has a byte at least.
      def enter(count)
        @due += count - 1
        raise EventTooLarge, "a value of the stream is larger than max_event_bytes, #{@max_bytes}" if @at - @start + @due > @max_bytes
        @open[-1] -= 1
        @open << count if count > 0
        raise Malformed, "the stream's MessagePack is nested deeper than #{MOST_LEVELS} levels" if @open.size > MOST_LEVELS
        @open.pop while @open.last&.zero?
        true
      end
    end
  end
end
