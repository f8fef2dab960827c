# frozen_string_literal: true

module Hikyaku
  class Hub
    module StreamFormat
      # Writes Server-Sent Events as a sequence of MessagePack values:
      #
      #     [id or nil, type or nil, data]    an event; line breaks in its data are LF, as an EventSource reports them
      #     nil                               a comment
      #     true                              the stream has caught up
      #     5000                              milliseconds after which the client reconnects when the stream has ended
      #
      # Each record is encoded once, however many streams receive it.
      #
      # https://github.com/msgpack/msgpack/blob/master/spec.md
      class MessagePack
        NIL_VALUE = "\xC0".b.freeze
        TRUE_VALUE = "\xC3".b.freeze
        ARRAY_OF_THREE = "\x93".b.freeze
        FIELD = /\A(event|id|retry|data): /n
        DIGITS = /\A[0-9]+\z/n
        # The fraction of the history's capacity that encoded records may take.
        CACHE_FRACTION = 4
        # Bytes of memory that an entry of the cache takes beside its own.
        ENTRY_OVERHEAD = 160
        private_constant :NIL_VALUE, :TRUE_VALUE, :ARRAY_OF_THREE, :FIELD, :DIGITS, :CACHE_FRACTION, :ENTRY_OVERHEAD

        class << self
          def encode(frames)
            bytes = String.new(capacity: frames.bytesize)
            fields = {}
            frames.each_line("\n", chomp: true) do |line|
              if line.empty?
                write(bytes, fields)
                fields = {}
              elsif line.start_with?(":")
                bytes << ((line == ": caught up") ? TRUE_VALUE : NIL_VALUE)
              elsif (name = line[FIELD, 1])
                value = line.byteslice(name.bytesize + 2, line.bytesize)
                (name == "data") ? (fields["data"] ||= []) << value : fields[name] = value
              end
            end
            write(bytes, fields)
            bytes.freeze
          end

          private

          def write(bytes, fields)
            bytes << integer(fields["retry"].to_i) if fields["retry"]&.match?(DIGITS)
            data = fields["data"] or return
            bytes << ARRAY_OF_THREE
            [fields["id"], fields["event"], (data.size == 1) ? data.first : data.join("\n")].each do |text|
              text ? bytes << string_header(text.bytesize) << text : bytes << NIL_VALUE
            end
          end

          def integer(number)
            if number < 0x80 then [number].pack("C")
            elsif number < 0x100 then [0xCC, number].pack("CC")
            elsif number < 0x1_0000 then [0xCD, number].pack("Cn")
            elsif number < 0x1_0000_0000 then [0xCE, number].pack("CN")
            else [0xCF, number].pack("CQ>")
            end
          end

          def string_header(size)
            if size < 0x20 then [0xA0 | size].pack("C")
            elsif size < 0x100 then [0xD9, size].pack("CC")
            elsif size < 0x1_0000 then [0xDA, size].pack("Cn")
            else [0xDB, size].pack("CN")
            end
          end
        end

        # history: responds to `first` and `capacity`.
        def initialize(history)
          @history = history
          @capacity = history.capacity / CACHE_FRACTION
          @cache = {} # by position, the oldest first
          @cached_bytes = 0
          @streams = 0
          @last_frame = @last_encoded = nil
        end

        def encode(position, record)
          @cache[position] || self.class.encode(record.frame).tap { |bytes| cache(position, bytes) }
        end

        # Heartbeats and notifications go to many streams one after the other, so the last frame is remembered.
        def encode_frame(frame)
          return @last_encoded if frame == @last_frame
          @last_frame = frame
          @last_encoded = self.class.encode(frame)
        end

        def add_stream = @streams += 1

        def remove_stream
          clear if (@streams -= 1).zero?
        end

        def used? = @streams > 0

        def cached = @cache.size

        def inspect = "#<#{self.class.name} #{@streams} streams>"

        private

        def cache(position, bytes)
          @cache[position] = bytes
          @cached_bytes += bytes.bytesize + ENTRY_OVERHEAD
          while @cached_bytes > @capacity || @cache.first.first < @history.first
            _, evicted = @cache.shift
            @cached_bytes -= evicted.bytesize + ENTRY_OVERHEAD
            break if @cache.empty?
          end
        end

        def clear
          @cache.clear
          @cached_bytes = 0
          @last_frame = @last_encoded = nil
        end
      end
    end
  end
end
