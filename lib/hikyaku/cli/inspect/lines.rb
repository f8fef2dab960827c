# frozen_string_literal: true

require_relative "../../codec/reading"
require_relative "../command"

module Hikyaku
  module CLI
    class Inspect < Command
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
