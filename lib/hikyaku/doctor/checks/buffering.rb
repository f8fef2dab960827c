# frozen_string_literal: true

require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
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
    end
  end
end
