# frozen_string_literal: true

require_relative "errors"
require_relative "event"
require_relative "values"

module Hikyaku
  class EventSource
    # Turns the bytes of one MessagePack stream into events, however they are cut, and as {Parser} does. No I/O, and no gem.
    #
    # docs/streams.md: `[id, type, data]` is an event, nil a heartbeat, true says that what was missed has come, an unsigned integer is the reconnection
    # time. Other values, and what an array has beyond the three, are left out: a hub of a later version may say more.
    #
    #     parser = Hikyaku::EventSource::MessagePackParser.new
    #     parser.feed("\x93\xA11\xC0") { |event| … }
    #     parser.feed("\xA1a") { |event| event.data }   # => "a"
    class MessagePackParser
      # By first byte: how an array's count is read, and how many bytes its head has.
      ARRAYS = {0xdc => ["n", 3], 0xdd => ["N", 5]}.freeze
      # How an unsigned integer is read, and a string's length.
      INTEGERS = {0xcc => "C", 0xcd => "n", 0xce => "N", 0xcf => "Q>"}.freeze
      LENGTHS = {0xd9 => ["C", 1], 0xda => ["n", 2], 0xdb => ["N", 4]}.freeze
      NOTHING = 0xc0
      # It cannot be sent as a `Last-Event-ID`; nor could an event stream have it.
      NO_ID = /[\0\r\n]/
      private_constant :ARRAYS, :INTEGERS, :LENGTHS, :NOTHING, :NO_ID

      attr_reader :last_event_id
      attr_reader :retry

      def initialize(last_event_id: "", max_event_bytes: 4_194_304)
        @last_event_id = last_event_id
        @values = Values.new(max_bytes: max_event_bytes)
      end

      # An event is given as soon as its last byte is there.
      def feed(bytes, &block)
        @values << bytes
        while (value = @values.shift)
          read(value, &block)
        end
      end

      private

      def read(value)
        first = value.getbyte(0)
        if first.between?(0x90, 0x9f) || ARRAYS.key?(first) then yield event(value, first)
        elsif first < 0x80 then @retry = first
        elsif (directive = INTEGERS[first]) then @retry = value.unpack1(directive, offset: 1)
        end
      end

      def event(value, first)
        directive, @at = ARRAYS.fetch(first, [nil, 1])
        count = directive ? value.unpack1(directive, offset: 1) : first & 15
        raise Malformed, "an event of the stream has #{count} parts, and not id, type and data" if count < 3
        id, type, data = text_or_nil(value, "id"), text_or_nil(value, "type"), text_or_nil(value, "data")
        raise Malformed, "an event of the stream has no data" unless data
        @last_event_id = id unless id.nil? || id.match?(NO_ID)
        Event.new(type: (type.nil? || type.empty?) ? "message" : type, data: data, id: @last_event_id)
      end

      # The next of an event's parts.
      def text_or_nil(value, what)
        first = value.getbyte(@at)
        @at += 1
        return if first == NOTHING
        length = first & 31
        unless first.between?(0xa0, 0xbf)
          directive, size = LENGTHS.fetch(first) { raise Malformed, format("the %s of an event begins with 0x%02X, and is no string", what, first) }
          length = value.unpack1(directive, offset: @at)
          @at += size
        end
        @at += length
        text = value.byteslice(@at - length, length).force_encoding(Encoding::UTF_8)
        raise Malformed, "the #{what} of an event is no UTF-8" unless text.valid_encoding?
        text.freeze
      end
    end
  end
end
