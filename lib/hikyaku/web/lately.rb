# frozen_string_literal: true

module Hikyaku
  class Web
    # What was found out lately, by what it was found out for. Bounded in bytes, in two generations like Hub::Topics: a look-up is
    # one or two hash look-ups. Any number of threads may ask.
    class Lately
      # @param max_bytes [Integer] what all of it may take, estimated
      def initialize(max_bytes)
        @max_bytes_of_generation = max_bytes / 2
        @young = {}
        @old = {}
        @bytes = 0
        @mutex = Mutex.new
      end

      # @param key [Object] compared whole
      # @return [Object, nil]
      def [](key) = @mutex.synchronize { @young[key] || @old[key] }

      # @param key [Object] not to be changed any more
      # @param value [Object]
      # @param bytes [Integer] what both take, estimated; what would take a whole generation is not remembered
      # @return [void]
      def store(key, value, bytes)
        return if bytes > @max_bytes_of_generation
        @mutex.synchronize do
          if @bytes + bytes > @max_bytes_of_generation
            @old = @young
            @young = {}
            @bytes = 0
          end
          @bytes += bytes unless @young.key?(key)
          @young[key] = value
        end
      end

      # @yieldparam value [Object]
      # @yieldreturn [Boolean] whether it is to be forgotten
      # @return [void]
      def forget
        @mutex.synchronize { [@young, @old].each { |values| values.delete_if { |_, value| yield value } } }
      end

      # @return [Integer] how many are remembered
      def size = @mutex.synchronize { (@young.keys | @old.keys).size }

      # @return [String] without what is remembered
      def inspect = "#<#{self.class.name}>"
    end
  end
end
