# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      # Connections of which is not known yet whose they are, where users have to say so: a few, and for a short time. When there is one too many, the one
      # that came first goes: who means it says who they are at once, and nobody is shut out by those who say nothing.
      class Strangers
        def initialize(most:)
          @most = most
          @lock = Mutex.new
          @sockets = {}.compare_by_identity
        end

        def come(socket)
          old = @lock.synchronize do
            @sockets[socket] = true
            @sockets.shift&.first if @sockets.size > @most
          end
          old&.shutdown
        rescue SystemCallError, IOError
          nil # it went by itself
        end

        # It is known, or gone.
        def go(socket) = @lock.synchronize { @sockets.delete(socket) }

        def size = @lock.synchronize { @sockets.size }
      end
    end
  end
end
