# frozen_string_literal: true

module Hikyaku
  module Codec
    module Coding
      # Compressors that are used again and again: to make one costs more than to compress a small body. Whoever takes one has it alone. What was not given
      # back in order, because of an error or because a thread was killed, is not used again.
      #
      # Safe for threads.
      #
      # @api private
      class Contexts
        # That are kept; more are made when they are needed.
        MOST = 8
        private_constant :MOST

        # @param most [Integer]
        # @yieldreturn [Object] a new compressor
        def initialize(most: MOST, &make)
          @most = most
          @make = make
          @idle = []
          @lock = Mutex.new
        end

        # @return [Object] a compressor as new
        def take = @lock.synchronize { @idle.pop } || @make.call

        # @param context [Object] a compressor as new
        # @return [Boolean] whether it is kept; where not, it is still the caller's
        def give(context)
          @lock.synchronize do
            next false if @idle.size >= @most
            @idle << context
            true
          end
        end

        # @return [Integer] how many are kept now
        def size = @lock.synchronize { @idle.size }
      end
    end
  end
end
