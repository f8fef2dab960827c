# frozen_string_literal: true

module Hikyaku
  module Codec
    module Rack
      class Compression
        class Cache
          # Hashes of bodies that came once: the last 4,096, and at times twice as many.
          class Seen
            MOST = 4_096
            private_constant :MOST

            def initialize
              @now = {}
              @before = {}
            end

            def size = @now.size + @before.size

            def again?(hash)
              return true if @now.key?(hash) || @before.key?(hash)
              @now, @before = {}, @now if @now.size >= MOST
              @now[hash] = true
              false
            end
          end
          private_constant :Seen
        end
      end
    end
  end
end
