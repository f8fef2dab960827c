# frozen_string_literal: true

module Hikyaku
  module Support
    # A cache that is bounded in bytes. What was not looked up while half of the bytes were filled anew is dropped, so that a look-up is
    # one or two hash look-ups and never a search for an entry to evict.
    #
    #     stored ─► young ──(half of the bytes are used)──► old ──► dropped
    #                 ▲────────────── looked up ────────────┘
    #
    # Keys are compared whole. Any number of threads may use it.
    class GenerationalCache
      # `max_bytes` is the limit; the block estimates the bytes of a key and its value. An entry larger than half of them is not kept.
      def initialize(max_bytes, &bytes)
        @max_bytes = max_bytes / 2
        @bytes_of = bytes
        @mutex = Mutex.new
        @version = 0
        empty
      end

      # Rises with every {#clear}: a value that was computed for an older version is not stored.
      attr_reader :version

      def [](key) = @mutex.synchronize { find(key) }

      # The block makes the value where there is none, with the cache locked.
      def fetch(key) = @mutex.synchronize { find(key) || add(key, yield) }

      def store(key, value, version: @version)
        @mutex.synchronize { add(key, value) if version == @version }
        value
      end

      def delete(key)
        @mutex.synchronize do
          forget(key)
          @old.delete(key)
        end
      end

      # Deletes the values for which the block is true.
      def delete_if(&block)
        @mutex.synchronize do
          @young.select { |_, value| block.call(value) }.each_key { |key| forget(key) }
          @old.delete_if { |_, value| block.call(value) }
        end
      end

      def clear
        @mutex.synchronize do
          @version += 1
          empty
        end
      end

      def size = @mutex.synchronize { @young.size + @old.size }

      # Without keys and values, which may be secret.
      def inspect = "#<#{self.class} #{size} entries, at most #{@max_bytes * 2} bytes>"

      private

      def empty
        @young = {}
        @old = {}
        @bytes = 0
      end

      def find(key) = @young[key] || ((value = @old.delete(key)) && add(key, value))

      def add(key, value)
        forget(key)
        @old.delete(key)
        bytes = @bytes_of.call(key, value)
        return value if bytes > @max_bytes
        if @bytes + bytes > @max_bytes
          @old = @young
          @young = {}
          @bytes = 0
        end
        @young[key] = value
        @bytes += bytes
        value
      end

      def forget(key)
        value = @young.delete(key) or return
        @bytes -= @bytes_of.call(key, value)
      end
    end
  end
end
