# frozen_string_literal: true

require_relative "errors"
require_relative "event"

module Hikyaku
  class EventSource
    # Turns the bytes of one event stream into events, however they are cut. No I/O.
    #
    # HTML standard, sections "Parsing an event stream" and "Interpreting an event stream".
    #
    #     parser = Hikyaku::EventSource::Parser.new
    #     parser.feed("data: a\n") { |event| … }
    #     parser.feed("\n") { |event| event.data }   # => "a"
    class Parser
      BOM = "\xEF\xBB\xBF".b.freeze
      LINE_END = /[\r\n]/n
      CR = "\r".ord
      LF = "\n".ord
      private_constant :BOM, :LINE_END, :CR, :LF

      attr_reader :last_event_id
      attr_reader :retry

      def initialize(last_event_id: "", max_event_bytes: 4_194_304)
        @last_event_id = last_event_id
        @id_buffer = last_event_id
        @max_event_bytes = max_event_bytes
        @bytes = String.new(encoding: Encoding::BINARY)
        @searched = 0
        @first_line = true
        @skip_lf = false
        clear
      end

      # An event is given as soon as its last byte is there.
      def feed(bytes, &block)
        return if bytes.empty?
        @bytes << bytes.b
        start = after_cr
        while (stop = @bytes.index(LINE_END, @searched))
          line(@bytes.byteslice(start, stop - start), &block)
          start = @searched = after_line_end(stop)
        end
        @bytes.slice!(0, start)
        @searched = @bytes.bytesize
        too_large!("a line") if @bytes.bytesize > @max_event_bytes
      end

      private

      # A CR that ended the last bytes ended a line, too: a LF that follows belongs to it.
      def after_cr
        return 0 unless @skip_lf
        @skip_lf = false
        return 0 unless @bytes.getbyte(0) == LF
        @searched = 1
      end

      def after_line_end(stop)
        return stop + 1 unless @bytes.getbyte(stop) == CR
        @skip_lf = stop + 1 == @bytes.bytesize
        (@bytes.getbyte(stop + 1) == LF) ? stop + 2 : stop + 1
      end

      def line(line, &block)
        if @first_line
          @first_line = false
          line = line.delete_prefix(BOM)
        end
        return dispatch(&block) if line.empty?
        name, value = line.split(":", 2)
        return if name.empty?
        field(name, decoded(value || ""))
      end

      # "UTF-8 decode" puts U+FFFD in the place of what is not UTF-8.
      def decoded(value) = value.delete_prefix(" ").force_encoding(Encoding::UTF_8).scrub.freeze

      def field(name, value)
        case name
        when "data" then append(value)
        when "event" then @type = value
        when "id" then @id_buffer = value unless value.include?("\0")
        when "retry" then @retry = value.to_i if value.match?(/\A[0-9]+\z/)
        end
      end

      def append(value)
        @data_bytes += value.bytesize + 1
        too_large!("an event") if @data_bytes > @max_event_bytes
        @lines << value
      end

      def dispatch
        @last_event_id = @id_buffer
        lines = @lines
        type = @type
        clear
        return if lines.empty?
        data = (lines.size == 1) ? lines.first : lines.join("\n")
        yield Event.new(type: type.empty? ? "message" : type, data: data.freeze, id: @last_event_id)
      end

      def clear
        @type = ""
        @lines = []
        @data_bytes = 0
      end

      def too_large!(what)
        raise EventTooLarge, "#{what} of the stream is larger than max_event_bytes, #{@max_event_bytes}"
      end
    end
  end
end
