# frozen_string_literal: true

require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
      # Whether who comes back with Last-Event-ID gets what was missed (Mercure draft-08, section "Reconnection, State
      # Reconciliation, and Event Sourcing").
      class Reconnection < Check
        about "Last-Event-ID"

        EARLIEST = "earliest"
        CURSOR = "mercure-last-event-id"
        private_constant :EARLIEST, :CURSOR

        private

        def perform
          needs_stream!
          needs_promptness!
          visit.publishes? ? with_events : with_cursor
        end

        def with_events
          first = received or return skipped("not checked: an event did not come; see buffering")
          missed = visit.publish
          by_header = follow(missed, headers: {"last-event-id" => first.id})
          return caught_up(by_header) if by_header.arrival(missed.id)
          by_parameter = follow(missed, last_event_id: first.id)
          return failed("with the header nothing of what was missed comes, with the parameter it does: the header does not get to the hub", :last_event_id) if by_parameter.arrival(missed.id)
          return failed("the hub does not know an event of a moment ago: it was restarted, or another hub answered; see processes", :processes) if gap?(by_header)
          failed("who comes back does not get what was missed, neither with the header nor with the parameter", :last_event_id)
        end

        # Reads one event and goes away.
        def received
          stream = visit.subscribe
          stream.wait(options.hold) { stream.head }
          publication = visit.publish
          publication if stream.wait(options.hold) { stream.arrival(publication.id) }
        ensure
          stream&.close
        end

        def follow(missed, **where)
          stream = visit.subscribe(**where)
          stream.wait(5 * patience) { stream.arrival(missed.id) }
          stream
        ensure
          stream&.close
        end

        def gap?(stream) = stream.arrivals.any? { |arrival| arrival.event.type == "mercure" && arrival.event.data.include?("\"gap\"") }

        def caught_up(stream)
          return warning("who comes back gets what was missed, but #{CURSOR} is taken out of the answer", :cursor) unless stream[CURSOR]
          ok("who comes back gets what was missed")
        end

        # The hub answers to a cursor, whichever it is, with one.
        def with_cursor
          return ok("the header gets to the hub (whether events are caught up with, a publisher's key would tell)") if cursor(headers: {"last-event-id" => EARLIEST})
          return failed("the header does not get to the hub; the parameter does", :last_event_id) if cursor(last_event_id: EARLIEST)
          warning("the hub's answer to a cursor, #{CURSOR}, does not come", :cursor)
        end

        def cursor(**where)
          stream = visit.subscribe(**where)
          stream.wait(options.hold) { stream.head }
          stream[CURSOR]
        ensure
          stream&.close
        end
      end
    end
  end
end
