# frozen_string_literal: true

require "bigdecimal"
require "date"

module Hikyaku
  module Codec
    module Plain
      # What stands for common objects where nothing has given them an `as_json`: the same that Active Support's would give.
      module StandIns
        class << self
          def of(value)
            case value
            when BigDecimal then yield decimal(value)
            when Numeric, Range then yield value.to_s
            when Date then yield value.iso8601
            when Struct then yield value.to_h
            # It is Enumerable: whoever passes a file by mistake would send what is in it, and read it to its end.
            when method(:readable?) then yield value.to_s
            else
              name = %i[to_hash to_a to_h].find { |each| (each != :to_a || value.is_a?(Enumerable)) && value.respond_to?(each) }
              yield value.public_send(name) if name
            end
          end

          private

          # Tempfile is no IO, and stands for one.
          def readable?(value) = value.is_a?(IO) || value.respond_to?(:to_io)

          def decimal(number) = number.finite? ? number.to_s("F") : number.to_f
        end
      end
    end
  end
end
