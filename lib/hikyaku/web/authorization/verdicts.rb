# frozen_string_literal: true

module Hikyaku
  class Web
    class Authorization
      # Remembers what valid tokens permit. Refusals are never kept. The whole token is the key, behind Ruby's keyed
      # hash, so nothing can be confused and nobody can aim at one bucket.
      #
      # Bounded in bytes: what was not asked for during a whole generation is dropped with it. Thread-safe.
      #
      #     stored ─► young ──(half of the bytes used)──► old ──► dropped
      #                 ▲───────────── asked for ──────────┘
      class Verdicts
        # What a token and an {Access} cost beyond their text: objects, hash slots.
        ENTRY_BYTES = 1_000
        # A compiled matcher beyond its text, and for each byte of its text.
        MATCHER_BYTES = 1_500
        BYTES_PER_PATTERN_BYTE = 30

        # @param max_bytes [Integer]
        def initialize(max_bytes:)
          @max_bytes = max_bytes / 2
          @mutex = Mutex.new
          @epoch = 0
          forget
        end

        # Rises with every {#clear}: a verdict that was reached before is not stored after it.
        #
        # @return [Integer]
        attr_reader :epoch

        # @param token [String]
        # @return [Access, nil]
        def [](token)
          @mutex.synchronize { @young[token] || revive(token) }
        end

        # @param token [String]
        # @param access [Access]
        # @param epoch [Integer] what {#epoch} was before the token was looked at
        def store(token, access, epoch)
          @mutex.synchronize { add(token, access) if epoch == @epoch }
        end

        # @param token [String]
        def delete(token)
          @mutex.synchronize do
            @young_bytes -= bytes(token, @young[token]) if @young.key?(token)
            @young.delete(token)
            @old.delete(token)
          end
        end

        # Forgets everything, also what is being decided at this moment.
        def clear
          @mutex.synchronize do
            @epoch += 1
            forget
          end
        end

        # @return [Integer] how many tokens are remembered
        def size = @mutex.synchronize { (@young.keys | @old.keys).size }

        # @return [String] without the tokens
        def inspect = "#<#{self.class} #{size} of at most #{@max_bytes * 2} bytes>"

        private

        def forget
          @young = {}
          @old = {}
          @young_bytes = 0
        end

        def revive(token)
          access = @old.delete(token) or return
          add(token, access)
          access
        end

        def add(token, access)
          cost = bytes(token, access)
          return if cost > @max_bytes || @young.key?(token)
          if @young_bytes + cost > @max_bytes
            @old = @young
            @young = {}
            @young_bytes = 0
          end
          @young[token] = access
          @young_bytes += cost
        end

        def bytes(token, access)
          matchers = access.publish_matchers + access.subscribe_matchers
          token.bytesize * 3 + ENTRY_BYTES +
            matchers.sum { |matcher| MATCHER_BYTES + matcher.pattern.bytesize * BYTES_PER_PATTERN_BYTE }
        end

        private_constant :ENTRY_BYTES, :MATCHER_BYTES, :BYTES_PER_PATTERN_BYTE
      end
    end
  end
end
