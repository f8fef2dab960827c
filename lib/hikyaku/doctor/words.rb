# frozen_string_literal: true

module Hikyaku
  class Doctor
    # Figures, and what others said, in sentences.
    module Words
      # Of what a server said, in a sentence.
      MOST = 160
      private_constant :MOST

      module_function

      # @param seconds [Numeric]
      # @return [String] "12 ms", "1.2 s", "75 s"
      def seconds(seconds)
        return "#{(seconds * 1000).ceil} ms" if seconds < 1
        (seconds < 10) ? "#{seconds.round(1)} s".sub(".0", "") : "#{seconds.round} s"
      end

      # @param seconds [Numeric]
      # @return [String] "5 minutes", "3 days"
      def long(seconds)
        unit, size = {"days" => 86_400, "hours" => 3600, "minutes" => 60}.find { |_, length| seconds >= 2 * length } || ["seconds", 1]
        "#{(seconds / size).floor} #{unit}"
      end

      # @param bytes [Integer]
      # @return [String] "512 bytes", "64 KB"
      def bytes(bytes) = (bytes < 2048) ? "#{bytes} bytes" : "#{bytes / 1024} KB"

      # @param count [Integer]
      # @param thing [String] in the singular
      # @return [String]
      def count(count, thing) = "#{count} #{thing}#{"s" unless count == 1}"

      # @param items [Array<String>]
      # @return [String] "a, b and c"
      def list(items) = (items.size < 2) ? items.join : "#{items[0..-2].join(", ")} and #{items.last}"

      # @param text [String, nil] of a server
      # @return [String] one line, not long, without what a terminal would obey
      def quote(text)
        line = text.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub(/[\p{Cntrl}\p{Cf}]+/, " ").strip
        (line.size > MOST) ? "#{line[0, MOST]}…" : line
      end
    end
  end
end
