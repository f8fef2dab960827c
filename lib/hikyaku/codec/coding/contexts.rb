# frozen_string_literal: true

module Hikyaku
  module Codec
    module Coding
      # Compressors that are used again and again: to make one costs more than to compress a small body. Whoever takes one has it alone. What was not given
      # back in order, because of an error or because a thread was killed, is not used again.
      #
      # Safe for threads.
      class Contexts
        # That are kept; more are made when they are needed.
        MOST = 8
        private_constant :MOST

        def initialize(most: MOST, &make)
          @most = most
          @make = make
          @idle = []
          @lock = Mutex.new
        end

        def take = @lock.synchronize { @idle.pop } || @make.call

        def give(context)
          @lock.synchronize do
            next false if @idle.size >= @most
            @idle << context
            true
          end
        end

        def size = @lock.synchronize { @idle.size }
      end
    end
  end
end
