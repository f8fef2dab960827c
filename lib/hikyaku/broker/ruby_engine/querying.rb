# frozen_string_literal: true

require "json"
require_relative "../permission"
require_relative "../wire"
require_relative "timetable"

module Hikyaku
  module Broker
    class RubyEngine
      # QUERY, and what is reported (docs/protocol.md, section 9).
      module Querying
        QUERIES = {1 => :report_queues, 2 => :report_explanation, 3 => :report_dead, 4 => :replay_dead, 5 => :drop_dead_letters, 6 => :report_segments,
                   7 => :report_sessions, 8 => :purge, 16 => :report_identities, 17 => :drop_identity}.freeze
        USUAL_LIMIT = 100
        MOST_LIMIT = 10_000
        SHOWN_BYTES = 256
        private_constant :QUERIES, :USUAL_LIMIT, :MOST_LIMIT, :SHOWN_BYTES

        private

        def query(session, frame)
          method = QUERIES[frame.what]
          return invalid(session, frame.id, "a QUERY asks for 1 to 8, 16 or 17, not #{frame.what}") unless method
          return invalid(session, frame.id, "a queue is of kind 0 or 1, not #{frame.kind}") if frame.kind > 1
          __send__(method, session, frame)
        end

        # As many as fit into a frame that the client takes.
        def report(session, frame, document, list = nil)
          json = JSON.generate(document)
          excess = 16 + json.bytesize - [session.max_frame, @limits.max_frame].min
          if list && excess > 0
            excess -= JSON.generate(list.pop).bytesize + 1 while excess > 0 && list.any?
            json = JSON.generate(document)
          end
          session.outbox << Wire.report(id: frame.id, document: json)
          speak(session)
        end

        def limit_of(frame) = frame.limit.zero? ? USUAL_LIMIT : [frame.limit, MOST_LIMIT].min

        # No more than there are: room is made for as many as are asked for.
        def least(things, frame, &) = things.min_by([limit_of(frame), things.size].min, &)

        # @return [Queue, nil] nil: it was refused
        def managed_queue(session, frame)
          key = Queue.key(frame.name, frame.kind)
          return forbidden(session, frame, key) unless session.may?(Permission::MANAGE, key)
          @queues[key] || deny(session, frame.id, Wire::Code::NO_SUCH_QUEUE, "there is no queue #{text(key)}")
        end

        def forbidden(session, frame, key) = deny(session, frame.id, Wire::Code::FORBIDDEN, "this client may not look into #{text(key)}")

        def no_message(session, frame, what = "message")
          deny(session, frame.id, Wire::Code::NO_SUCH_MESSAGE, "there is no #{what} #{frame.number}")
        end

        def report_queues(session, frame)
          return forbidden(session, frame, "queues") if session.permissions.none? { |permission| permission.rights.anybits?(Permission::MANAGE) }
          found = @queues.each_value.select { |queue| queue.kind == frame.kind && queue.name.start_with?(frame.name) && session.may?(Permission::MANAGE, queue.key) }
          list = least(found, frame, &:name).map { |queue| figures_of(queue) }
          report(session, frame, {queues: list}, list)
        end

        def report_explanation(session, frame)
          if frame.number.zero?
            queue = managed_queue(session, frame) or return
            message = queue.oldest || queue.earliest
            return report(session, frame, {because: "nothing waits in this queue"}) unless message
          else
            message = @messages[frame.number] or return no_message(session, frame)
            return forbidden(session, frame, message.queue.key) unless session.may?(Permission::MANAGE, message.queue.key)
          end
          report(session, frame, {message: description_of(message), because: reason_for(message)})
        end

        def report_dead(session, frame)
          queue = managed_queue(session, frame) or return
          list = least(queue.dead.each_value.select { |message| message.id > frame.number }, frame, &:id).map { |message| letter(message) }
          report(session, frame, {dead: list}, list)
        rescue Log::Journal::Unread
          deny(session, frame.id, Wire::Code::OVERLOADED, "there is no open file left for this report: ask again")
        end

        def letter(message)
          {id: message.id, reason: message.reason, words: text(message.words), failures: message.failures, crashes: message.crashes, age_ms: age(message),
           bytes: message.size, payload: [payload_of(message).byteslice(0, SHOWN_BYTES)].pack("m0")}
        end

        def payload_of(message) = (message.content || @ledger.content(message)).byteslice(message.properties_size..)

        def replay_dead(session, frame)
          queue, letters = dead_letters(session, frame)
          return unless letters
          letters.each { |message| replay(message) }
          report(session, frame, {count: letters.size})
          dispatch(queue)
        end

        def drop_dead_letters(session, frame)
          _, letters = dead_letters(session, frame)
          return unless letters
          letters.each { |message| remove(message) }
          report(session, frame, {count: letters.size})
        end

        # @return [Array(Queue, Array<Message>), nil] nil: it was refused
        def dead_letters(session, frame)
          if frame.number.zero?
            queue = managed_queue(session, frame) or return
            return [queue, queue.dead.values.sort_by(&:id)]
          end
          message = @messages[frame.number]
          return no_message(session, frame, "dead letter") unless message && message.state == :dead
          return forbidden(session, frame, message.queue.key) unless session.may?(Permission::MANAGE, message.queue.key)
          [message.queue, [message]]
        end

        def report_segments(session, frame)
          return forbidden(session, frame, "the journal") unless session.may?(Permission::MANAGE, "*")
          list = @ledger ? @ledger.segments.each_value.reject(&:dropped).first(limit_of(frame)).map { |segment| description_of_segment(segment) } : []
          report(session, frame, {segments: list}, list)
        end

        def description_of_segment(segment)
          id, message = segment.live.first
          found = {number: segment.number, bytes: @ledger.segment_bytes, live: segment.live.size}
          found[:oldest] = {id: id, queue: text(message.queue.key)} if message
          found
        end

        def report_sessions(session, frame)
          return forbidden(session, frame, "sessions") unless session.may?(Permission::MANAGE, "*")
          list = @sessions.each_value.select(&:open?).first(limit_of(frame)).map do |each|
            {session: each.serial, identity: text(each.identity), agent: each.agent, address: text(each.address), out: each.deliveries.size,
             unanswered: each.unanswered, subscriptions: each.subscriptions.size, passed_over: (each.lapsed if each.lapsed > 0)}.compact
          end
          report(session, frame, {sessions: list}, list)
        end

        # Those that are idle, for longest before others, as they would be forgotten; then those that are connected.
        def report_identities(session, frame)
          return forbidden(session, frame, "identities") unless session.may?(Permission::MANAGE, "*")
          idle = @idle_producers.keys
          connected = @identities.each_value.map(&:producer).select(&:remembered)
          list = (idle + connected).select { |producer| producer.identity.start_with?(frame.name) }.first(limit_of(frame)).map do |producer|
            free = @idle_producers.key?(producer)
            {identity: text(producer.identity), connected: !free, idle_ms: free ? ((@now - producer.idle_since) * 1000).floor : 0,
             epoch: producer.epoch, low: producer.low}
          end
          report(session, frame, {identities: list}, list)
        end

        def drop_identity(session, frame)
          return forbidden(session, frame, "identities") unless session.may?(Permission::MANAGE, "*")
          if @identities.key?(frame.name)
            return invalid(session, frame.id, "a client is connected as #{text(frame.name)}: its identity can be dropped when it has ended")
          end
          producer = @producers[frame.name]
          forget_producer(producer) if producer
          report(session, frame, {count: producer ? 1 : 0})
        end

        def purge(session, frame)
          queue = managed_queue(session, frame) or return
          waiting = queue.delayed.keys
          queue.each_ready { |message| waiting << message }
          waiting.each { |message| remove(message) }
          report(session, frame, {count: waiting.size})
        end

        def figures_of(queue)
          {name: text(queue.name), kind: queue.kind, ready: queue.ready, delayed: queue.delayed.size, out: queue.out, dead: queue.dead.size, bytes: queue.bytes,
           oldest_ms: (message = queue.oldest) ? age(message) : 0, receivers: queue.receivers.size, sent: queue.sent, freed: queue.freed,
           redelivered: queue.redelivered, failed: queue.failed, crashed: queue.crashed, expired: queue.expired}
        end

        def description_of(message)
          found = {id: message.id, queue: text(message.queue.name), kind: message.queue.kind, state: message.state, age_ms: age(message), priority: message.priority,
                   level: message.level, failures: message.failures, crashes: message.crashes, returns: message.returns, bytes: message.size}
          found[:reason] = message.reason if message.state == :dead
          found[:due_in_ms] = left(message.due, message.due_slot) if message.state == :delayed
          found[:expires_in_ms] = left(message.expires, message.expiry_slot) if message.expires > 0 && message.state != :dead
          found[:segment] = message.segment if message.segment
          found[:holder] = holder_of(message.delivery) if message.delivery
          found
        end

        # To the ms as long as nobody has set the wall clock; then to a slot, which is what counts.
        def left(at, slot)
          return 0 unless slot
          by_slot = (Timetable.end_of(slot) - @now) * 1000
          [(by_slot - (at - @wall)).between?(-1, Timetable::SLOT * 1000 + 1) ? at - @wall : by_slot.round, 0].max
        end

        def holder_of(delivery)
          session = delivery.subscription.session
          {identity: text(session.identity), session: session.serial, delivery: delivery.id, lease_in_ms: [((delivery.deadline - @now) * 1000).ceil, 0].max, agent: session.agent}
        end

        def reason_for(message)
          case message.state
          when :out then "a receiver has it"
          when :delayed then "its time has not come"
          when :dead then ["", "it has failed too often", "its receivers have vanished with it too often", "its receiver said that it is dead"][message.reason]
          else reason_for_waiting(message)
          end
        end

        def reason_for_waiting(message)
          queue = message.queue
          return "the broker is about to stop" if @draining
          return "nobody receives from this queue" if queue.receivers.empty?
          fitting = queue.receivers.each_key.select { |each| fits?(each, message) }
          return too_large(queue, message) if fitting.empty?
          unspent = fitting.select { |each| each.out < each.credit }
          return passed_over(unspent) if unspent.any?(&:lapsed)
          return "its receiver has vanished with it: it waits for one that has nothing else" if message.suspect?
          return "messages before it wait for receivers, none of which is free" unless queue.first.equal?(message)
          return "a receiver has a suspect, and gets nothing else until it is done with it" if unspent.any?(&:alone)
          return "a receiver is kept free for a suspect, and gets nothing else before it" if unspent.include?(queue.reserved)
          return "who has credit left has said that it leaves" if unspent.any? { |each| each.session.drains }
          return "who has credit left does not read what was sent to it" if unspent.any? { |each| each.session.crowded }
          "no receiver has credit left"
        end

        def too_large(queue, message)
          widest = queue.receivers.each_key.max_by { |each| each.session.max_frame }
          "no receiver takes a message of this size: its PUSH has #{push_bytes(message.size)} bytes, and the largest frame that any of them takes has " \
            "#{widest.session.max_frame}: #{name_of(widest.session)}"
        end

        def passed_over(receivers)
          lapsed = receivers.select(&:lapsed)
          others = {1 => "", 2 => ", and another"}.fetch(lapsed.size) { |count| ", and #{count - 1} others" }
          "a receiver let a lease end and has said nothing since; it is passed over until it says FREE, NACK, CREDIT or ACK of a PUSH, " \
            "or connects again: #{name_of(lapsed.first.session)}#{others}"
        end

        def name_of(session)
          identity = ", identity \"#{text(session.identity)}\"" unless session.identity.empty?
          agent = ", agent \"#{session.agent}\"" unless session.agent.empty?
          "session #{session.serial}#{identity}#{agent}"
        end

        def age(message) = [@wall - message.sent_at, 0].max

        def text(bytes) = bytes.dup.force_encoding(Encoding::UTF_8).scrub
      end
    end
  end
end
