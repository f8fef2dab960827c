# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      class ServerManager
        # What is late or takes long, and has what waits behind it asked elsewhere.
        module Elsewhere
          private

          # What is to come on all connections, and on which nothing comes.
          def listen(now)
            mean = (@link.answer_bytes unless @link.guessed?)
            due = connections.map { |connection| connection.due(mean) }
            all = due.sum
            @line.expect(all - @due)
            @due = all
            connections.zip(due) { |connection, bytes| connection.listen(bytes, now) }
          end

          # What is late, or has taken too long.
          def look_after(connection, now)
            return late!(connection) if in_doubt?(connection) && connection.expired?(now)
            return if connection.expire(now)
            hold(connection) if !connection.held && Lateness.endless?(connection, @link.rate, now)
            late = late_at(connection)
            return if late.nil? || now < late
            return move_tail(connection) if connection.paused?
            late!(connection) unless connection.excused?(Lateness.seconds(@link.round_trip), now)
          end

          def late_at(connection) = Lateness.at(connection, @link.round_trip)

          # Where one was answered and the next is not, it may never be: all that is unanswered is asked elsewhere; so are two that were to find
          # out. Else, where none was, the first may just take long, and is waited for; the others are not to.
          def late!(connection)
            in_doubt = in_doubt?(connection)
            what = (connection.probing ? :discarded : :stalled) if in_doubt
            Lesson.draw_from_silence(@verdict, connection, what || :slow, @clock.call)
            in_doubt ? ask_elsewhere(connection, what) : move_tail(connection)
            connection.probing = false
          end

          def in_doubt?(connection) = (connection.pipeline.midway? || connection.probing) && !connection.pipeline.begun?

          def ask_elsewhere(connection, what)
            left = connection.pipeline.give_up
            @pool.delete(connection)
            connection.close
            left.first.suspected = what
            left.first.solitary!
            left.first.tried!
            left.each { |exchange| enqueue(exchange) }
          end

          def move_tail(connection)
            connection.give_up_tail.each { |exchange| enqueue(exchange) }
          end
        end
        private_constant :Elsewhere
      end
    end
  end
end
