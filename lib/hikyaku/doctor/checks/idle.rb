# frozen_string_literal: true

require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
      # Whether a stream on which nothing happens stays, and shows by the hub's comments that it does.
      class Idle < Check
        about "an idle stream stays"

        # Seconds in which a hub with its usual heartbeat sends a comment.
        USUAL = 20
        # Of a goodbye.
        MOMENT = 1
        # Silence, in times between two comments, that is not the hub's: who cuts after less does not wait for comments.
        MISSED = 1.5
        private_constant :USUAL, :MOMENT, :MISSED

        private

        def perform
          return skipped("not checked: --idle 0") if options.idle.zero?
          needs_stream!
          stream = visit.subscribe
          return skipped("not checked: no head came; see flush") unless stream.wait(options.hold) { stream.head }
          listen(stream)
          return cut(stream) if stream.ended
          together(stream) || dead(stream) || stays(stream)
        ensure
          stream&.close
        end

        def listen(stream)
          deadline = now + options.idle
          until stream.ended || (left = deadline - now) <= 0
            visit.progress("idle: holding a stream", left)
            stream.wait([left, 1].min) { false }
          end
        end

        # Comments after the one with which a stream begins.
        def beats(stream) = stream.comments.reject { |at| at - stream.head_at < [patience, 0.5].min }

        # Seconds between them, in the middle.
        def rhythm(stream)
          gaps = [stream.comments.first, *beats(stream)].compact.uniq.each_cons(2).map { |one, other| other - one }.sort
          gaps[gaps.size / 2]
        end

        def cut(stream)
          lasted = stream.ended_at - stream.head_at
          silent = stream.ended_at - (stream.last_byte_at || stream.head_at)
          measured = {seconds: lasted, silent: silent}
          how = (stream.ended == :reset) ? "reset" : "closed"
          return warning("the hub itself ended the stream after #{seconds(lasted)}: its max_lifetime is short, or it was stopped", :max_lifetime, **measured) if stream.retry && silent < MOMENT
          beat = rhythm(stream)
          return failed("the stream was #{how} after #{seconds(lasted)}, though comments came each #{seconds(beat)}: its whole time is limited", :lifetime, **measured) if beat && silent < MISSED * beat
          failed("the stream was #{how} after #{seconds(silent)} without a byte: clients come back again and again, or do not notice", :idle, **measured)
        end

        # Most of them with another, and so not when they were sent.
        def together(stream)
          beats = beats(stream)
          return unless beats.size > 2 && beats.uniq.size * 2 <= beats.size
          visit.hold_events
          failed("the hub's comments come several at once: something holds them back", :buffering)
        end

        def dead(stream)
          return if !visit.publishes? || visit.held?
          publication = visit.publish
          return if stream.wait(options.hold) { stream.arrival(publication.id) }
          failed("after #{seconds(options.idle)} the stream seems open, but an event does not come on it any more", :idle)
        end

        def stays(stream)
          beat = rhythm(stream)
          return ok("it stays for #{seconds(options.idle)}, with a comment each #{seconds(beat)}", seconds: options.idle, heartbeat: beat) if beat
          return ok("it stays for #{seconds(options.idle)}", seconds: options.idle) if options.idle < USUAL
          warning("it stays for #{seconds(options.idle)}, but no comment came: a client cannot tell silence from a dead connection", :silence, seconds: options.idle)
        end
      end
    end
  end
end
