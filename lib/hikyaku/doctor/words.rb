# frozen_string_literal: true

module Hikyaku
  class Doctor
    # Figures, and what others said, in sentences.
    module Words
      # Of what a server said, in a sentence.
      MOST = 160
      private_constant :MOST

      module_function

      def seconds(seconds)
        return "#{(seconds * 1000).ceil} ms" if seconds < 1
        (seconds < 10) ? "#{seconds.round(1)} s".sub(".0", "") : "#{seconds.round} s"
      end

      def long(seconds)
        unit, size = {"days" => 86_400, "hours" => 3600, "minutes" => 60}.find { |_, length| seconds >= 2 * length } || ["seconds", 1]
        "#{(seconds / size).floor} #{unit}"
      end

      def bytes(bytes) = (bytes < 2048) ? "#{bytes} bytes" : "#{bytes / 1024} KB"

      def count(count, thing) = "#{count} #{thing}#{"s" unless count == 1}"

      def list(items) = (items.size < 2) ? items.join : "#{items[0..-2].join(", ")} and #{items.last}"

      def quote(text)
        line = text.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub(/[\p{Cntrl}\p{Cf}]+/, " ").strip
        (line.size > MOST) ? "#{line[0, MOST]}…" : line
      end
    end
  end
end
