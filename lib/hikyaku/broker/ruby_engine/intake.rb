# frozen_string_literal: true

require_relative "../../log/journal/errors"
require_relative "../level"
require_relative "../permission"
require_relative "../wire/code"
require_relative "../wire/properties"
require_relative "../wire/type"
require_relative "message"
require_relative "pending_ack"
require_relative "producers"
require_relative "text"

module Hikyaku
  module Broker
    class RubyEngine
      # SEND and SEND_BATCH: which messages are taken, and which are refused (docs/protocol.md, sections 4 to 6).
      class Intake
        PROPERTIES = "the properties of a message are pairs of a name and a value, one behind the other"
        # Milliseconds after which a request that was refused may succeed.
        RETRY_AFTER = {Wire::Code::QUEUE_FULL => 1000, Wire::Code::OVERLOADED => 250, Wire::Code::DISK_FULL => 5000, Wire::Code::LIMIT => 5000}.freeze
        private_constant :PROPERTIES, :RETRY_AFTER

        # Messages by their level, and those that were sent again.
        attr_reader :received, :duplicates

        # `max_stored`: bytes of the largest message that fits into a segment; nil without storage.
        def initialize(parts, max_stored:)
          @parts = parts
          @limits = parts.limits
          @max_stored = max_stored
          @received = [0, 0, 0]
          @duplicates = 0
        end

        # `bytes` are those of the frame.
        def send_message(session, frame, bytes)
          level = level_of(frame)
          key = check_form(session, frame, level) or return
          return @parts.output.invalid(session, frame.id, PROPERTIES) unless well_formed?(frame)
          sequence = frame.sequence
          return acknowledge_duplicate(session, frame, level, bytes) if taken?(session, sequence)
          queue = destination(session, frame, level, key)
          return refuse(session, frame.id, queue) unless queue.is_a?(Queue)
          message = objection(session, queue, frame.content, level, sequence) ||
            take(session, queue, frame, frame.content, frame.properties_size, level, sequence)
          return refuse(session, frame.id, [message, sentence(message, queue, frame.content)]) if message.is_a?(Integer)
          @parts.acks.add_message(session, frame.id, level, message.id, bytes)
          @parts.deliveries.dispatch(queue)
          @parts.messages.release_content(message)
        end

        def send_batch(session, frame, bytes)
          level = level_of(frame)
          key = check_form(session, frame, level) or return
          size = frame.messages.size
          return @parts.output.invalid(session, frame.id, "a SEND_BATCH has 1 to 65,535 messages, not #{size}") unless size.between?(1, 65_535)
          if PendingAck::BYTES + PendingAck::REFUSAL_BYTES * size > session.max_frame
            return @parts.output.refuse(session, frame.id, Wire::Code::TOO_BIG, "its ACK may become larger than the largest frame of this client")
          end
          queue = destination(session, frame, level, key)
          unless queue.is_a?(Queue)
            return refuse(session, frame.id, queue) unless repeats?(session, frame)
            closed = queue.first
            level = [level, @parts.levels.highest].min
          end
          taken, duplicates, refusals = take_all(session, queue, frame, level, closed)
          value = (duplicates.any? || taken.empty?) ? 0 : taken.first.id
          # The ACK waits for the level of what was taken now, and says no more than holds for all.
          reached = Level::MEMORY if duplicates.any? { |number| session.producer.volatile?(number) }
          @parts.acks.add(session, Wire::Type::SEND_BATCH, frame.id, level, count: size - refusals.size, value: value, messages: size, bytes: bytes)
            &.add(reached: reached, duplicate: duplicates.any?, refusals: refusals)
          @parts.deliveries.dispatch(queue) unless closed
          taken.each { |message| @parts.messages.release_content(message) }
        end

        # Returns the queue that a request names, or refuses it and returns nil.
        def queue_for(session, id, name, kind, right)
          key = key_for(session, id, name, kind) or return
          queue = find_queue(session, name, kind, key, right)
          queue.is_a?(Queue) ? queue : refuse(session, id, queue)
        end

        def retry_after(code) = (code == Wire::Code::DRAINING) ? @parts.draining : RETRY_AFTER.fetch(code, 0)

        private

        # `closed` is an error code: nothing is taken that was not taken before.
        def take_all(session, queue, frame, level, closed)
          sequence = frame.sequence
          duplicates = []
          taken = []
          refusals = []
          frame.messages.each_with_index do |item, index|
            number = sequence.zero? ? 0 : sequence + index
            code = Wire::Code::INVALID unless well_formed?(item)
            if code.nil? && taken?(session, number)
              @duplicates += 1
              next duplicates << number
            end
            code ||= closed || objection(session, queue, item.content, level, number) ||
              take(session, queue, frame, item.content, item.properties_size, level, number)
            next taken << code unless code.is_a?(Integer)
            # What follows may not be taken before a message that is sent again.
            closed = code if Wire::Code.later?(code)
            @parts.output.refused[code] += 1
            refusals << [index, code, retry_after(code)]
          end
          [taken, duplicates, refusals]
        end

        def level_of(frame) = (frame.level == Level::DEFAULT) ? @parts.levels.default : frame.level

        # Checks what holds for every message, also for one that was taken before. Returns the key of its queue, or refuses and returns nil.
        def check_form(session, frame, level)
          return @parts.output.invalid(session, frame.id, "a priority is 0 to 9, not #{frame.priority}") if frame.priority > 9
          return @parts.output.invalid(session, frame.id, "a level is 0, 1, 2 or 255, not #{level}") if level > Level::SYNCED
          return @parts.output.invalid(session, frame.id, "messages are numbered by clients that have an identity") if frame.sequence > 0 && session.producer.nil?
          key_for(session, frame.id, frame.destination, frame.kind)
        end

        # Returns the queue, or an error code and a sentence: nothing new is taken.
        def destination(session, frame, level, key)
          return [Wire::Code::DRAINING, "the broker is about to stop"] if @parts.draining
          if session.unacked >= @limits.window_messages || session.unacked_bytes >= @limits.window_bytes
            return [Wire::Code::OVERLOADED, "too many messages have no answer yet"]
          end
          return [Wire::Code::LEVEL, "this broker has no storage: there is level memory alone"] if level > @parts.levels.highest
          find_queue(session, frame.destination, frame.kind, key, Permission::SEND)
        end

        def key_for(session, id, name, kind)
          return @parts.output.invalid(session, id, "a destination is of kind 0 or 1, not #{kind}") if kind > 1
          key = Queue.key(name, kind)
          return key if @parts.queues.key?(key) || Queue.name?(name, kind)
          @parts.output.invalid(session, id, "a name has 1 to 255 bytes of UTF-8 without control characters, and a queue's does not begin with @")
        end

        def find_queue(session, name, kind, key, right)
          own = kind == 1 && right == Permission::RECEIVE
          return [Wire::Code::FORBIDDEN, "this client may not do this with #{Text.readable(key)}"] unless own || session.may?(right, key)
          @parts.queues.find_or_create(name, kind, key) || [Wire::Code::LIMIT, "there are #{@limits.max_queues} queues, as many as there may be"]
        end

        def refuse(session, id, (code, sentence)) = @parts.output.refuse(session, id, code, sentence, retry_after: retry_after(code))

        def well_formed?(item) = item.properties_size.zero? || Wire::Properties.well_formed?(item.content, item.properties_size)

        def taken?(session, sequence) = sequence > 0 && session.producer.taken?(sequence)

        # Whether a message of a batch was taken before.
        def repeats?(session, frame) = frame.sequence > 0 && frame.messages.each_index.any? { |index| taken?(session, frame.sequence + index) }

        # Returns the error code with which a new message is refused, or nil.
        def objection(session, queue, content, level, sequence)
          return Wire::Code::SEQUENCE if sequence > 0 && session.producer.ahead?(sequence)
          return Wire::Code::TOO_BIG if @parts.deliveries.push_bytes(content.bytesize) > @limits.max_frame || larger_than_queue?(content.bytesize) ||
            (level > 0 && content.bytesize > @max_stored)
          return Wire::Code::QUEUE_FULL if full?(queue, content.bytesize)
          return Wire::Code::OVERLOADED if @parts.messages.memory_bytes + Message::INDEX_BYTES + (level.zero? ? content.bytesize : 0) > @limits.max_memory
          Wire::Code::DISK_FULL if level > 0 && @parts.store.full?
        end

        def larger_than_queue?(bytes) = @limits.max_queue_bytes > 0 && bytes > @limits.max_queue_bytes

        def full?(queue, bytes)
          (@limits.max_queue_messages > 0 && queue.messages >= @limits.max_queue_messages) ||
            (@limits.max_queue_bytes > 0 && queue.bytes + bytes > @limits.max_queue_bytes)
        end

        # Returns the message, or an error code.
        def take(session, queue, frame, content, properties_size, level, sequence)
          messages = @parts.messages
          store = @parts.store
          @parts.recovery.reserve_numbers if store && messages.next_number >= messages.reserved
          message = build(session, queue, frame, content, properties_size, level, sequence)
          return Wire::Code::LIMIT unless sequence.zero? || @parts.producers.remember(session.producer, durable: level > 0)
          store.append_message(message) if level > 0
          session.producer.take(sequence, volatile: level.zero? && !store.nil?) if sequence > 0
          messages.next_number += 1
          @received[level] += 1
          messages.add(message, frame.delay, frame.time_to_live)
          message
        rescue Log::Journal::Full
          Wire::Code::DISK_FULL
        rescue LimitExceeded
          Wire::Code::TOO_BIG
        end

        def build(session, queue, frame, content, properties_size, level, sequence)
          wall = @parts.clock.wall
          message = Message.new(@parts.messages.next_number, queue, wall, frame.priority, level, properties_size, content)
          message.due = wall + frame.delay if frame.delay > 0
          message.expires = wall + frame.time_to_live if frame.time_to_live > 0
          if sequence > 0
            message.sequence = sequence
            message.producer = session.producer.number
          end
          message
        end

        # A message in memory alone reaches no other level, whatever is asked for now.
        def acknowledge_duplicate(session, frame, level, bytes)
          @duplicates += 1
          level = Level::MEMORY if @parts.store.nil? || session.producer.volatile?(frame.sequence)
          @parts.acks.add(session, Wire::Type::SEND, frame.id, level, messages: 1, bytes: bytes)&.add(duplicate: true)
        end

        def sentence(code, queue, content)
          case code
          when Wire::Code::SEQUENCE then "this number is more than #{Producer::WINDOW} above what is settled: use those below first"
          when Wire::Code::QUEUE_FULL then "the queue #{Text.readable(queue.key)} is full: it holds #{queue.messages} messages"
          when Wire::Code::OVERLOADED then "messages take as much memory as broker_max_memory permits"
          when Wire::Code::DISK_FULL then @parts.store.full_because
          when Wire::Code::LIMIT then Producers::ALL_CONNECTED
          when Wire::Code::TOO_BIG then too_big(content.bytesize)
          end
        end

        # The frame of a SEND may be as large as is permitted, and the PUSH that delivers the message would be larger than that.
        def too_big(bytes)
          max_frame = @limits.max_frame
          may =
            if @parts.deliveries.push_bytes(bytes) > max_frame
              "a message may have #{max_frame - @parts.deliveries.push_bytes(0)}, so that the PUSH that delivers it is no larger than the broker's largest frame of #{max_frame}"
            elsif larger_than_queue?(bytes)
              "a queue may have #{@limits.max_queue_bytes} in all (broker_max_queue_bytes)"
            else
              "a message on the disk may have #{@max_stored}, so that it fits into a segment beside #{@parts.producers.max} identities: " \
                "raise broker_segment_bytes, or lower broker_max_identities"
            end
          "properties and payload have #{bytes} bytes; #{may}"
        end
      end
    end
  end
end
