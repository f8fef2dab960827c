# frozen_string_literal: true

module Hikyaku
  class Hub
    class Form
      # Writes what Server-Sent Events say as MessagePack values, one behind the other:
      #
      #     [id or nil, type or nil, data]    an event; line breaks in its data are LF, as an EventSource has them
      #     nil                               a comment: nothing happens
      #     true                              the stream has caught up
      #     5000                              come back after so many milliseconds, when the stream has ended
      #
      # https://github.com/msgpack/msgpack/blob/master/spec.md
      module MessagePack
        NOTHING = "\xC0".b.freeze
        CAUGHT_UP = "\xC3".b.freeze
        TRIPLE = "\x93".b.freeze
        FIELD = /\A(event|id|retry|data): /n
        DIGITS = /\A[0-9]+\z/n
        private_constant :NOTHING, :CAUGHT_UP, :TRIPLE, :FIELD, :DIGITS

        module_function

        def of(frames)
          bytes = String.new(capacity: frames.bytesize)
          fields = {}
          frames.each_line("\n", chomp: true) do |line|
            if line.empty?
              write(bytes, fields)
              fields = {}
            elsif line.start_with?(":")
              bytes << ((line == ": caught up") ? CAUGHT_UP : NOTHING)
            elsif (name = line[FIELD, 1])
              value = line.byteslice(name.bytesize + 2, line.bytesize)
              (name == "data") ? (fields["data"] ||= []) << value : fields[name] = value
            end
          end
          write(bytes, fields)
          bytes.freeze
        end

        def write(bytes, fields)
          bytes << integer(fields["retry"].to_i) if fields["retry"]&.match?(DIGITS)
          data = fields["data"] or return
          bytes << TRIPLE
          [fields["id"], fields["event"], (data.size == 1) ? data.first : data.join("\n")].each do |text|
            text ? bytes << head_of_string(text.bytesize) << text : bytes << NOTHING
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

        def head_of_string(size)
          if size < 0x20 then [0xA0 | size].pack("C")
          elsif size < 0x100 then [0xD9, size].pack("CC")
          elsif size < 0x1_0000 then [0xDA, size].pack("Cn")
          else [0xDB, size].pack("CN")
          end
        end

        private_class_method :write, :integer, :head_of_string
      end
    end
  end
end
