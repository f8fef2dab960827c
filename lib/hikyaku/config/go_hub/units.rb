# frozen_string_literal: true

module Hikyaku
  class Config
    class GoHub
      # Durations and sizes as Go programs write them.
      module Units
        SECONDS = {"ns" => 1e-9, "us" => 1e-6, "µs" => 1e-6, "ms" => 1e-3, "s" => 1, "m" => 60, "h" => 3_600, "d" => 86_400}.freeze
        PART = /(\d{1,9}(?:\.\d{1,9})?)(ns|us|µs|ms|s|m|h|d)/
        BYTES = {"" => 1, "k" => 1000, "m" => 1000**2, "g" => 1000**3, "ki" => 1024, "mi" => 1024**2, "gi" => 1024**3}.freeze
        private_constant :SECONDS, :PART, :BYTES

        module_function

        def seconds(text)
          return 0 if text == "0"
          return unless text.match?(/\A(?:#{PART})+\z/o)
          sum = text.scan(PART).sum { |number, unit| number.to_r * SECONDS.fetch(unit).to_r }
          (sum.denominator == 1) ? sum.to_i : sum.to_f.round(6)
        end

        def bytes(text)
          match = text.match(/\A(\d{1,12}(?:\.\d{1,6})?) ?([kmg]?i?)b?\z/i) or return
          factor = BYTES[match[2].downcase] or return
          (match[1].to_r * factor).to_i
        end
      end
      private_constant :Units
    end
  end
end
