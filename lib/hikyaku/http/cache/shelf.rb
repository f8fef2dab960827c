# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Cache
      # The entries, by URL and by when they were last of use; those that were not for longest go when there are too many.
      #
      # @api private
      class Shelf
        MOST_VARIANTS = 32 # of one URL
        NONE = [].freeze
        private_constant :MOST_VARIANTS, :NONE

        # @return [Integer] that the entries take
        attr_reader :bytes

        # @param max_bytes [Integer]
        def initialize(max_bytes)
          @max_bytes = max_bytes
          clear
        end

        # @param url [String]
        # @return [Array<Entry>] the one that was of use last at the end
        def [](url) = @variants.fetch(url, NONE)

        # @return [Integer]
        def size = @entries.size

        # @yieldparam entry [Entry] the one that was of use last comes first
        # @return [Enumerator] without a block
        def each(&block) = @entries.keys.reverse_each(&block)

        # @param entry [Entry]
        # @return [Boolean] whether it is still here
        def include?(entry) = @entries.key?(entry)

        # @param entry [Entry]
        # @return [void]
        def add(entry)
          remove(self[entry.url].first) while self[entry.url].size >= MOST_VARIANTS
          (@variants[entry.url] ||= []) << entry
          @entries[entry] = true
          @bytes += entry.bytes
          remove(@entries.first.first) while @bytes > @max_bytes
        end

        # @param entry [Entry]
        # @return [void]
        def remove(entry)
          return unless @entries.delete(entry)
          @bytes -= entry.bytes
          variants = @variants[entry.url]
          variants.delete_if { |other| other.equal?(entry) }
          @variants.delete(entry.url) if variants.empty?
        end

        # @param url [String]
        # @return [void]
        def remove_all(url) = self[url].dup.each { |entry| remove(entry) }

        # @param entry [Entry] that is of use
        # @return [void]
        def touch(entry)
          return unless @entries.delete(entry)
          @entries[entry] = true
          variants = @variants[entry.url]
          variants.push(variants.delete_at(variants.index { |other| other.equal?(entry) }))
        end

        # @return [void]
        def clear
          @variants = {}
          @entries = {}.compare_by_identity
          @bytes = 0
        end
      end
    end
  end
end
