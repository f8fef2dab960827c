# frozen_string_literal: true

module Hikyaku
  module Codec
    module Rack
      class Compression
        # What was found out about short strings that come again and again. It takes up as many as there are places, and then no more: what clients send
        # cannot make it grow. Safe for threads, without a lock.
        class Memory
          MOST = 64
          MOST_BYTES = 128
          private_constant :MOST, :MOST_BYTES

          def initialize
            @found = {}.freeze
          end

          def fetch(string)
            @found.fetch(string) do
              found = yield
              @found = @found.merge(string.dup.freeze => found).freeze if @found.size < MOST && string.bytesize <= MOST_BYTES
              found
            end
          end

          def size = @found.size
        end
        private_constant :Memory
      end
    end
  end
end
