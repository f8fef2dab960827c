# frozen_string_literal: true

require_relative "cache/entries"
require_relative "cache/latest"
require_relative "cache/seen"

module Hikyaku
  module Codec
    module Rack
      class Compression
        # Compressed bodies, found by the body itself: by its hash first, and then compared byte by byte.
        #
        # Ruby's hash of a string is keyed and takes a tenth of the time of SHA-256, which would take as long as to compress. With it, a body of
        # 50 KB is found in 7 µs, and looked for in vain and kept in 15; gzip takes 100, zstd 40.
        #
        # Of most bodies there is no second time. So what comes for the first time is among the latest, where many such push one another out and nothing
        # else; what comes again from there is kept among the entries, of which those go first that were not used for the longest time. Of what was pushed
        # out its hash is known for some time: it is kept when it comes again, too.
        #
        #     first time ──► latest ──── comes again ──► entries ──► used longest ago: out
        #                      │                           ▲
        #                      └─ out: its hash is known ──┘ comes again, and is compressed once more
        #
        # Nothing crosses users. Who asked, and which address, entity tag, cookie or token there was, is no part of the key, and header fields are not kept:
        # what is given is a function of the bytes that are about to be sent to this very client. So responses that are private are kept as well: in Rails,
        # all are that say nothing else. What remains is time: whoever can make the application send him bytes of his choice, and measure a fraction of a
        # millisecond, learns whether the same bytes were sent to somebody a short while ago. Kept apart by user, a list would not be compressed once for all
        # who see it. An application for which that is too much says `no-store`, which is not kept, or has no cache.
        #
        # Safe for threads. Two that bring the same new body at the same time both compress it.
        class Cache
          # A body that is larger than this part of the cache is not kept.
          SHARE = 8
          # What this part is for: the latest.
          LATEST = 4
          # The latest have a place for so many bytes: bodies that are worth compressing are longer.
          PLACE = 800
          private_constant :SHARE, :LATEST, :PLACE

          def initialize(most_bytes)
            @longest = most_bytes / SHARE
            @latest = Latest.new(most_bytes / LATEST, most_bytes / LATEST / PLACE)
            @entries = Entries.new(most_bytes - @latest.most)
            @seen = Seen.new
            @lock = Mutex.new
          end

          def bytes = @lock.synchronize { @entries.bytes + @latest.bytes }

          def fetch(plain, name)
            return yield.freeze if plain.bytesize > @longest
            # Of text Ruby's hash would depend on its encoding, and take up to twenty times as long to find out what characters there are.
            plain = plain.b
            hash = hash_of(plain)
            found, again = @lock.synchronize { look(hash, plain, name) }
            return found if found
            coded = yield.freeze
            @lock.synchronize { (again ? @entries : @latest).keep(hash, plain, name, coded) }
            coded
          end

          private

          def hash_of(plain) = plain.hash

          def look(hash, plain, name)
            @latest.take(hash, plain) { |*same| @entries.keep(hash, *same) }
            [@entries.find(hash, plain, name), @seen.again?(hash)]
          end
        end
        private_constant :Cache
      end
    end
  end
end
