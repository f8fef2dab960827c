# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Cache
      # The entries, by URL and by when they were last of use; those that were not for longest go when there are too many.
      class Shelf
        MOST_VARIANTS = 32 # of one URL
        NONE = [].freeze
        private_constant :MOST_VARIANTS, :NONE

        attr_reader :bytes

        def initialize(max_bytes)
          @max_bytes = max_bytes
          clear
        end

        def [](url) = @variants.fetch(url, NONE)

        def size = @entries.size

        def each(&block) = @entries.keys.reverse_each(&block)

        def include?(entry) = @entries.key?(entry)

        def add(entry)
          remove(self[entry.url].first) while self[entry.url].size >= MOST_VARIANTS
          (@variants[entry.url] ||= []) << entry
          @entries[entry] = true
          @bytes += entry.bytes
          remove(@entries.first.first) while @bytes > @max_bytes
        end

        def remove(entry)
          return unless @entries.delete(entry)
          @bytes -= entry.bytes
          variants = @variants[entry.url]
          variants.delete_if { |other| other.equal?(entry) }
          @variants.delete(entry.url) if variants.empty?
        end

        def remove_all(url) = self[url].dup.each { |entry| remove(entry) }

        def touch(entry)
          return unless @entries.delete(entry)
          @entries[entry] = true
          variants = @variants[entry.url]
          variants.push(variants.delete_at(variants.index { |other| other.equal?(entry) }))
        end

        def clear
          @variants = {}
          @entries = {}.compare_by_identity
          @bytes = 0
        end
      end
    end
  end
end
