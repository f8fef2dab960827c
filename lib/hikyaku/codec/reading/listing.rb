# frozen_string_literal: true

require_relative "number"
require_relative "printer"

module Hikyaku
  module Codec
    module Reading
      # Shows tokens a line each: the byte at which it begins, how the bytes have it, and what it says. A key ends with a colon.
      class Listing < Printer
        def initialize(out, limits: USUAL)
          super(out, width: nil, limits: limits)
          @lines = 0
        end

        # Every value has lines of its own.
        def begin_value = nil

        private

        def enter(token)
          super { |bracket| row(token, "#{bracket}#{Number.text(token.value) if token.value}") }
        end

        def value(token) = super { |text| row(token, text) }

        def row(token, text)
          line(Number.text(token.offset), token.form, "#{"  " * @parts.size}#{text}#{":" if key?}")
        end

        def key? = @parts.last&.kind == :map && @parts.last.turn == :key

        def more(part) = line("", "", "#{"  " * @parts.size}  … #{Number.text(part.more)} more")

        def close_with(_) = nil

        def separate(*) = nil

        def line(offset, form, text)
          @layout.text("#{"\n" if @lines.positive?}#{offset.rjust(12)}  #{form.ljust(16)}  #{text}")
          @lines += 1
        end

        def placed_value(_) = true
      end
    end
  end
end
