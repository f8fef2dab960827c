# frozen_string_literal: true

require_relative "../check"
require_relative "../client"

module Hikyaku
  class Doctor
    module Checks
      # Whether a stream begins when it is asked for, or only with its first event: until then a client thinks that it is
      # not connected.
      class Flush < Check
        about "a stream begins at once"

        private

        def perform
          needs_stream!
          stream = visit.subscribe
          stream.wait(patience) { stream.head }
          return ok("its head is there in #{seconds(stream.head_seconds)}", seconds: stream.head_seconds) if stream.head
          visit.publishes? ? with_event(stream) : with_comment(stream)
        ensure
          stream&.close
        end

        def with_event(stream)
          visit.publish
          stream.wait(patience) { stream.head }
          return failed("the head of a stream comes only with the first event", :flush) if stream.head
          with_comment(stream)
        end

        def with_comment(stream)
          visit.progress("flush: waiting for the head of a stream", options.hold)
          stream.wait(options.hold) { stream.head }
          return failed("the head of a stream does not come within #{seconds(options.hold)}", :flush) unless stream.head
          failed("the head of a stream comes after #{seconds(stream.head_seconds)}#{", with the hub's first comment" if stream.comments.any?}", :flush, seconds: stream.head_seconds)
        end
      end

      # Whether events come when they are published, or are held back: for a time, or until so many bytes are there.
      class Buffering < Check
        about "events come at once"

        PROBES = 3
        # Bytes that are published to push out what is held: each as much as all before.
        PADDING = [4096, 4096, 8192, 16_384, 32_768, 65_536, 131_072].freeze
        private_constant :PROBES, :PADDING

        private

        def perform
          needs_stream!
          stream = visit.subscribe
          stream.wait(options.hold) { stream.head }
          return failed("streams are compressed for a client that asks for none", :compression) if stream.coded?
          visit.publishes? ? with_events(stream) : with_comments(stream)
        ensure
          stream&.close
        end

        def with_events(stream)
          probes = Array.new(PROBES) { probe(stream) }
          return at_once(stream, probes) if probes.all? { |each| prompt?(stream, each) }
          return lost if lost?(stream, probes)
          visit.progress("buffering: an event does not come; waiting for it", options.hold)
          stream.wait(options.hold) { arrived(stream, probes).any? }
          return padded(stream, probes) if arrived(stream, probes).empty?
          stream.wait(options.hold) { arrived(stream, probes).size == PROBES }
          lost?(stream, probes) ? lost : late(stream, probes)
        end

        def probe(stream)
          visit.publish.tap { |publication| stream.wait(patience) { stream.arrival(publication.id) } }
        end

        def arrived(stream, probes) = probes.select { |each| stream.arrival(each.id) }

        # The time counts from the hub's answer to the publish; an event may be there before that.
        def delay(stream, publication) = [stream.arrival(publication.id).at - publication.answered_at, 0].max

        def prompt?(stream, publication) = stream.arrival(publication.id) && delay(stream, publication) <= patience

        def at_once(stream, probes)
          worst = probes.map { |each| delay(stream, each) }.max
          ok("an event is there #{seconds(worst)} after its publish was answered, at most", seconds: worst)
        end

        # What is held back comes in order: who has a later event and not an earlier one will never get that.
        def lost?(stream, probes)
          there = probes.map { |each| !stream.arrival(each.id).nil? }
          there.each_cons(2).include?([false, true])
        end

        def lost
          visit.hold_events if !options.wants?("processes")
          warning("some events do not come at all, while later ones do: see processes")
        end

        def late(stream, probes)
          delays = probes.filter_map { |each| delay(stream, each) if stream.arrival(each.id) }
          slow = delays.count { |each| each > patience }
          worst = delays.max
          return warning("#{slow} of #{PROBES} events came late, after #{seconds(worst)} at most", :buffering, seconds: worst) if slow < delays.size
          visit.hold_events
          return failed("an event comes only when the next is published: something holds the last bytes back until more follow", :buffering, seconds: worst, held_by: "next bytes") if pushed?(stream, probes)
          failed("events come #{seconds(worst)} after their publish: something holds them back for a time", :buffering, seconds: worst, held_by: "time")
        end

        # Each came when the next was published, and without that.
        def pushed?(stream, probes)
          probes.each_cons(2).all? do |one, other|
            at = stream.arrival(one.id)&.at
            at&.between?(other.sent_at, other.answered_at + patience) && stream.arrival(other.id)&.at != at
          end
        end

        def padded(stream, probes)
          visit.hold_events
          published = 0
          size = stream.size
          PADDING.each do |bytes|
            published += bytes
            visit.progress("buffering: publishing #{Words.bytes(published)} to push it out", patience)
            visit.publish("x" * bytes)
            next unless stream.wait(patience) { stream.size > size && stream.arrivals.any? }
            return stream.arrival(probes.first.id) ? by_size(published) : lost
          end
          failed("no event came within #{seconds(options.hold)}, nor when #{Words.bytes(published)} more were published: something waits for the end of the stream, or they are lost", :buffering, held_by: "all")
        end

        def by_size(published)
          failed("events are held back until about #{Words.bytes(published)} are there", :buffering, bytes: published, held_by: "size")
        end

        # The hub begins a stream with a comment, and sends one after each time of silence.
        def with_comments(stream)
          return ok("the hub's first comment comes at once (for events give a publisher's key or token)") if stream.wait(patience) { stream.comments.any? }
          visit.progress("buffering: waiting for a comment of the hub", options.hold)
          stream.wait(options.hold) { stream.comments.any? }
          return warning("no comment of the hub came within #{seconds(options.hold)}; for events give a publisher's key or token", :buffering) if stream.comments.empty?
          visit.hold_events
          failed("the hub's first comment comes after #{seconds(stream.comments.first - stream.sent_at)}", :buffering, seconds: stream.comments.first - stream.sent_at)
        end
      end

      # Whether something between compresses streams, for clients that say that they understand it. They like it less than what is
      # not compressed: so the hub, which weighs what they like, does not do it.
      class Compression < Check
        about "compression"

        CODINGS = "gzip, deflate, br, zstd"
        ASKED = "identity, #{CODINGS.split(", ").map { |coding| "#{coding};q=0.9" }.join(", ")}"
        private_constant :CODINGS, :ASKED

        private

        def perform
          needs_stream!
          stream = visit.subscribe(headers: {"accept-encoding" => ASKED})
          return unseen unless stream.wait(options.hold) { stream.head }
          return ok("streams are not compressed") unless stream.coded?
          judge(stream, Words.quote(stream["content-encoding"]))
        ensure
          stream&.close
        end

        def unseen = failed("for a client that offers #{CODINGS}, no head of a stream comes within #{seconds(options.hold)}", :compression)

        def judge(stream, coding)
          against = stream["cache-control"].to_s.include?("no-transform") ? ", against its Cache-Control" : ""
          return warning("streams are compressed (#{coding})#{against}", :compression, coding: coding) unless visit.publishes?
          return warning("streams are compressed (#{coding})#{against}; events come at once nevertheless", :compression, coding: coding) if passes?(stream)
          failed("streams are compressed (#{coding})#{against}, and events are held back by it", :compression, coding: coding)
        end

        def passes?(stream)
          stream.wait(patience) { stream.size > 0 }
          size = stream.size
          visit.publish
          stream.wait(patience) { stream.size > size }
        end
      end

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

      # Whether one hub answers all connections: what is published on one reaches who listens on another.
      class Processes < Check
        about "one hub for all"

        private

        def perform
          needs_stream!
          needs_publisher!
          needs_promptness!
          streams = open_streams
          listening = streams.select(&:stream?)
          return skipped("not checked: of #{options.connections} streams only #{listening.size} were opened") if listening.size < 2
          publications = Array.new(options.connections) { visit.publish }
          Stream.wait_all(listening, options.hold) { listening.all? { |stream| missing(stream, publications).zero? } }
          judge(listening, publications)
        ensure
          streams&.each(&:close)
        end

        def open_streams
          streams = []
          options.connections.times { streams << visit.subscribe }
          Stream.wait_all(streams, options.hold) { streams.all? { |stream| stream.head || stream.ended } }
          streams
        rescue ConnectionFailed
          streams.each(&:close)
          raise
        end

        def missing(stream, publications) = publications.count { |publication| stream.arrival(publication.id).nil? }

        def judge(streams, publications)
          short = streams.count { |stream| missing(stream, publications) > 0 }
          sent = "#{Words.count(publications.size, "update")} on as many connections"
          return ok("#{sent}, and each of #{streams.size} readers got them all") if short.zero?
          failed("#{sent}: #{short} of #{streams.size} readers did not get them all, so several hubs answer, and do not know of each other#{named(publications)}", :processes, readers: streams.size, short: short)
        end

        # Each hub names its memory.
        def named(publications)
          names = publications.filter_map { |publication| publication.answer["hikyaku-idempotency"] }.uniq
          (names.size > 1) ? " (#{names.size} answered)" : ""
        end
      end

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
