# frozen_string_literal: true

module Hikyaku
  class Hub
    # Finds the entries whose prefix begins a given string, with one hash look-up for each length of prefix in use. Prefixes are cut
    # to LONGEST bytes, which bounds the look-ups; so the caller must test the candidates.
    class PrefixTable
      LONGEST = 512
      private_constant :LONGEST

      def initialize
        @by_length = {}
      end

      def add(prefix, entry)
        prefix = prefix.byteslice(0, LONGEST)
        prefixes = (@by_length[prefix.bytesize] ||= {})
        (prefixes[prefix.b] ||= {}.compare_by_identity)[entry] = true
      end

      def remove(prefix, entry)
        prefix = prefix.byteslice(0, LONGEST)
        prefixes = @by_length[prefix.bytesize] or return
        entries = prefixes[prefix.b] or return
        entries.delete(entry)
        return unless entries.empty?
        prefixes.delete(prefix.b)
        @by_length.delete(prefix.bytesize) if prefixes.empty?
      end

      def each_candidate(string, &block)
        bytes = string.b
        @by_length.each do |length, prefixes|
          next if length > bytes.bytesize
          prefixes[bytes.byteslice(0, length)]&.each_key(&block)
        end
      end

      def empty? = @by_length.empty?
    end
  end
end
