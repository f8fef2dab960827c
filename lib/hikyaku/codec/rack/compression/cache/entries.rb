# frozen_string_literal: true

module Hikyaku
  module Codec
    module Rack
      class Compression
        class Cache
          # Bodies that came more than once, with what the codings made of them. Those that were not used for the longest time go first.
          class Entries
            # What an entry takes besides its bytes, about.
            OVERHEAD = 512
            Entry = Struct.new(:plain, :coded, :size)
            private_constant :OVERHEAD, :Entry

            def initialize(most_bytes)
              @most_bytes = most_bytes
              @bytes = 0
              @entries = {}
            end

            attr_reader :bytes

            def find(hash, plain, name) = used(hash, plain)&.coded&.[](name)

            def keep(hash, plain, name, coded)
              entry = used(hash, plain) || add(hash, plain)
              return if entry.coded.key?(name)
              entry.coded[name] = coded
              grow(entry, coded.bytesize)
              forget(@entries.first.first) while @bytes > @most_bytes
            end

            private

            def used(hash, plain)
              entry = @entries[hash]
              return unless entry && entry.plain == plain
              @entries.delete(hash)
              @entries[hash] = entry
            end

            def add(hash, plain)
              forget(hash)
              entry = @entries[hash] = Entry.new(plain.dup.freeze, {}, 0)
              grow(entry, plain.bytesize + OVERHEAD)
              entry
            end

            def grow(entry, bytes)
              entry.size += bytes
              @bytes += bytes
            end

            def forget(hash)
              entry = @entries.delete(hash)
              @bytes -= entry.size if entry
            end
          end
          private_constant :Entries
        end
      end
    end
  end
end
