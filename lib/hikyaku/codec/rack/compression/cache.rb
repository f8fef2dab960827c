# frozen_string_literal: true

module Hikyaku
  module Codec
    module Rack
      class Compression
        # Compressed bodies, found by the body itself: by its hash first, and then compared byte by byte. So it gives to nobody what is not a function of
        # the bytes that were about to be sent anyway, whoever asks. Those that were not used for the longest time go first.
        #
        # Ruby's hash of a string is keyed and takes a tenth of the time of SHA-256, which would take as long as to compress.
        #
        # A body is kept when it comes for the second time: of most there is no second time, and to keep them for nothing costs more than their hash: what lives long
        # makes Ruby look through all of its memory sooner.
        #
        # Safe for threads. Two that bring the same new body at the same time both compress it.
        #
        # @api private
        class Cache
          # What an entry takes besides its bytes, about.
          OVERHEAD = 512
          # A body that is larger than this part of the cache is not kept.
          SHARE = 8
          # Hashes of bodies that came once; so many, and at times twice as many.
          MOST_SEEN = 4_096
          Entry = Struct.new(:plain, :coded, :size)
          private_constant :OVERHEAD, :SHARE, :MOST_SEEN, :Entry

          # @param most_bytes [Integer]
          def initialize(most_bytes)
            @most_bytes = most_bytes
            @bytes = 0
            @entries = {}
            @seen = {}
            @seen_before = {}
            @lock = Mutex.new
          end

          # @return [Integer] that it holds
          attr_reader :bytes

          # @return [Integer] how many bodies are remembered that came once
          def seen = @lock.synchronize { @seen.size + @seen_before.size }

          # @param plain [String]
          # @param name [String] of the coding
          # @yieldreturn [String] compressed
          # @return [String] compressed, frozen
          def fetch(plain, name)
            return yield if plain.bytesize > @most_bytes / SHARE
            hash = plain.hash
            found, again = @lock.synchronize { [used(hash, plain)&.coded&.[](name), seen?(hash)] }
            return found if found
            return yield unless again
            yield.freeze.tap { |coded| @lock.synchronize { keep(hash, plain, name, coded) } }
          end

          private

          def seen?(hash)
            return true if @seen.key?(hash) || @seen_before.key?(hash)
            @seen, @seen_before = {}, @seen if @seen.size >= MOST_SEEN
            @seen[hash] = true
            false
          end

          def used(hash, plain)
            entry = @entries[hash]
            return unless entry && entry.plain == plain
            @entries.delete(hash)
            @entries[hash] = entry
          end

          def keep(hash, plain, name, coded)
            entry = used(hash, plain)
            unless entry
              forget(hash)
              entry = @entries[hash] = Entry.new(plain.dup.freeze, {}, 0)
              grow(entry, plain.bytesize + OVERHEAD)
            end
            return if entry.coded.key?(name)
            entry.coded[name] = coded
            grow(entry, coded.bytesize)
            forget(@entries.first.first) while @bytes > @most_bytes
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
        private_constant :Cache
      end
    end
  end
end
