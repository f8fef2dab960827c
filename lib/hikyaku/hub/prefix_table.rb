# frozen_string_literal: true

module Hikyaku
  class Hub
    # Things that stand under a text prefix; finds those whose prefix begins a given string with one hash look-up
    # for each length of prefix in use. Longer prefixes than LONGEST stand where their beginning stands: who asks tries what it is
    # given, and no string leads to more look-ups, or longer ones.
    class PrefixTable
      LONGEST = 512
      private_constant :LONGEST

      def initialize
        @by_length = {}
      end

      def add(prefix, thing)
        prefix = prefix.byteslice(0, LONGEST)
        prefixes = (@by_length[prefix.bytesize] ||= {})
        (prefixes[prefix.b] ||= {}.compare_by_identity)[thing] = true
      end

      # Removes a thing. O(1).
      def remove(prefix, thing)
        prefix = prefix.byteslice(0, LONGEST)
        prefixes = @by_length[prefix.bytesize] or return
        things = prefixes[prefix.b] or return
        things.delete(thing)
        return unless things.empty?
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
