# frozen_string_literal: true

require "json"
require_relative "../permission"
require_relative "../wire"
require_relative "dead_letters"
require_relative "explanation"
require_relative "text"

module Hikyaku
  module Broker
    class RubyEngine
      # QUERY and its reports (docs/protocol.md, section 9).
      class Reports
        DEFAULT_LIMIT = 100
        MAX_LIMIT = 10_000
        private_constant :DEFAULT_LIMIT, :MAX_LIMIT

        def initialize(parts)
          @parts = parts
          @clock = parts.clock
          @output = parts.output
          @explanation = Explanation.new(parts)
          @dead_letters = DeadLetters.new(parts, self)
        end

        def query(session, frame)
          what = frame.what
          return @output.invalid(session, frame.id, "a QUERY asks for 1 to 8, 16 or 17, not #{what}") unless what.between?(1, 8) || what.between?(16, 17)
          return @output.invalid(session, frame.id, "a queue is of kind 0 or 1, not #{frame.kind}") if frame.kind > 1
          case what
          when 1 then report_queues(session, frame)
          when 2 then report_explanation(session, frame)
          when 3 then @dead_letters.report(session, frame)
          when 4 then @dead_letters.revive(session, frame)
          when 5 then @dead_letters.delete(session, frame)
          when 6 then report_segments(session, frame)
          when 7 then report_sessions(session, frame)
          when 8 then purge(session, frame)
          when 16 then report_identities(session, frame)
          when 17 then forget_identity(session, frame)
          end
        end

        def figures_of(queue)
          {name: text(queue.name), kind: queue.kind, ready: queue.ready, delayed: queue.delayed.size, out: queue.out, dead: queue.dead.size, bytes: queue.bytes,
           oldest_ms: (message = queue.oldest) ? age(message) : 0, receivers: queue.receivers.size, sent: queue.sent, freed: queue.freed,
           redelivered: queue.redelivered, failed: queue.failed, crashed: queue.crashed, expired: queue.expired}
        end

        # Sends a report with as much of `list`, which is in `document`, as fits into a frame that the client takes.
        def report(session, frame, document, list = nil)
          json = JSON.generate(document)
          excess = 16 + json.bytesize - [session.max_frame, @parts.limits.max_frame].min
          if list && excess > 0
            excess -= JSON.generate(list.pop).bytesize + 1 while excess > 0 && list.any?
            json = JSON.generate(document)
          end
          @output.send_frame(session, Wire.report(id: frame.id, document: json))
        end

        # The smallest of the things, as many as are asked for. No more than there are: `min_by` makes room for its argument.
        def first_of(things, frame, &) = things.min_by([limit_of(frame), things.size].min, &)

        # Returns the queue that a request names, or refuses it and returns nil.
        def queue_for(session, frame)
          key = Queue.key(frame.name, frame.kind)
          return refuse(session, frame, key) unless session.may?(Permission::MANAGE, key)
          @parts.queues[key] || @output.refuse(session, frame.id, Wire::Code::NO_SUCH_QUEUE, "there is no queue #{text(key)}")
        end

        def refuse(session, frame, key) = @output.refuse(session, frame.id, Wire::Code::FORBIDDEN, "this client may not look into #{text(key)}")

        def no_message(session, frame, kind = "message")
          @output.refuse(session, frame.id, Wire::Code::NO_SUCH_MESSAGE, "there is no #{kind} #{frame.number}")
        end

        # In milliseconds.
        def age(message) = [@clock.wall - message.sent_at, 0].max

        private

        def text(bytes) = Text.readable(bytes)

        def limit_of(frame) = frame.limit.zero? ? DEFAULT_LIMIT : [frame.limit, MAX_LIMIT].min

        def manages_all?(session) = session.may?(Permission::MANAGE, "*")

        def report_queues(session, frame)
          return refuse(session, frame, "queues") if session.permissions.none? { |permission| permission.rights.anybits?(Permission::MANAGE) }
          found = @parts.queues.select { |queue| queue.kind == frame.kind && queue.name.start_with?(frame.name) && session.may?(Permission::MANAGE, queue.key) }
          list = first_of(found, frame, &:name).map { |queue| figures_of(queue) }
          report(session, frame, {queues: list}, list)
        end

        def report_explanation(session, frame)
          if frame.number.zero?
            queue = queue_for(session, frame) or return
            message = queue.oldest || queue.earliest
            return report(session, frame, {because: "nothing waits in this queue"}) unless message
          else
            message = @parts.messages[frame.number] or return no_message(session, frame)
            return refuse(session, frame, message.queue.key) unless session.may?(Permission::MANAGE, message.queue.key)
          end
          report(session, frame, {message: @explanation.describe(message), because: @explanation.reason(message)})
        end

        def report_segments(session, frame)
          return refuse(session, frame, "the journal") unless manages_all?(session)
          segments = @parts.store ? @parts.store.segments.reject(&:dropped).first(limit_of(frame)) : []
          list = segments.map { |segment| describe_segment(segment) }
          report(session, frame, {segments: list}, list)
        end

        def describe_segment(segment)
          id, message = segment.live.first
          found = {number: segment.number, bytes: @parts.store.segment_bytes, live: segment.live.size}
          found[:oldest] = {id: id, queue: text(message.queue.key)} if message
          found
        end

        def report_sessions(session, frame)
          return refuse(session, frame, "sessions") unless manages_all?(session)
          list = @parts.sessions.select(&:open?).first(limit_of(frame)).map do |each|
            {session: each.serial, identity: text(each.identity), agent: each.agent, address: text(each.address), out: each.deliveries.size,
             unanswered: each.unacked, subscriptions: each.subscriptions.size, passed_over: (each.lapsed if each.lapsed > 0)}.compact
          end
          report(session, frame, {sessions: list}, list)
        end

        # Idle ones come first, in the order in which they would be forgotten.
        def report_identities(session, frame)
          return refuse(session, frame, "identities") unless manages_all?(session)
          producers = @parts.producers
          found = (producers.idle + producers.connected.select(&:remembered)).select { |producer| producer.identity.start_with?(frame.name) }
          list = found.first(limit_of(frame)).map do |producer|
            idle = producers.idle?(producer)
            {identity: text(producer.identity), connected: !idle, idle_ms: idle ? ((@clock.now - producer.idle_since) * 1000).floor : 0,
             epoch: producer.epoch, low: producer.low}
          end
          report(session, frame, {identities: list}, list)
        end

        def forget_identity(session, frame)
          return refuse(session, frame, "identities") unless manages_all?(session)
          producers = @parts.producers
          if producers.session_of(frame.name)
            return @output.invalid(session, frame.id, "a client is connected as #{text(frame.name)}: its identity can be dropped when it has ended")
          end
          producer = producers[frame.name]
          producers.forget(producer) if producer
          report(session, frame, {count: producer ? 1 : 0})
        end

        def purge(session, frame)
          queue = queue_for(session, frame) or return
          waiting = queue.delayed.keys
          queue.each_ready { |message| waiting << message }
          waiting.each { |message| @parts.messages.remove(message) }
          report(session, frame, {count: waiting.size})
        end
      end
    end
  end
end
