# frozen_string_literal: true

module Hikyaku
  module Broker
    class Server
      class Reactor
        # Of a reactor: how connections go, and how it ends itself.
        module Departures
          # Milliseconds after which a client may come back to a broker that stops.
          RETRY_AFTER = 1_000
          private_constant :RETRY_AFTER

          # Ends what was never started, because somebody could not listen.
          def abandon
            return if @thread
            @engine.close(now: @now, wall: @wall)
            clear_up
          end

          # Takes no more connections and messages, waits until what is out was finished, and closes the engine.
          def stop(seconds: 10)
            tell { drain(seconds) }
            @thread&.join
          end

          private

          def leave
            return if @gone.empty?
            gone = @gone.uniq
            @gone = []
            gone.each { |connection| sparing_others(connection) { release(connection) } }
          end

          def release(connection)
            return unless @connections.delete(connection.session)
            @blocked.delete(connection)
            @strangers.delete(connection)
            @full.delete(connection)
            connection.close
            @engine.disconnect(connection.session, now: @now, wall: @wall)
          end

          # The first time it begins to stop, and no sooner than all is said does it end.
          def drain(seconds)
            return if @deadline
            @deadline = @now + seconds
            @listeners.each do |listener, monitors|
              monitors.each(&:close)
              listener.close
            end
            @listeners.clear
            @engine.drain(RETRY_AFTER)
          end

          def look_at_the_end
            @finished = @now >= @deadline || (@engine.drained? && @blocked.empty? && @gone.empty?)
          end

          def clear_up
            @errands.each(&:close)
            @listeners.each_key(&:close)
            @connections.each_value(&:close)
            @connections.clear
            @inbox.close
            while (_, answers = @inbox.pop)
              answers&.push(nil)
            end
            @selector.close
          end
        end
      end
    end
  end
end
