# frozen_string_literal: true

require_relative "../../log/journal/errors"
require_relative "../level"
require_relative "../permission"
require_relative "../wire/code"
require_relative "../wire/properties"
require_relative "../wire/type"
require_relative "answer"
require_relative "identifying"
require_relative "message"

module Hikyaku
  module Broker
    class RubyEngine
      # SEND and SEND_BATCH: what is taken, and what is refused (docs/protocol.md, sections 4 to 6).
      module Sending
        # A control character, or what is no text in UTF-8.
        CONTROL = /[\x00-\x1F\x7F]/n
        PROPERTIES = "the properties of a message are pairs of a name and a value, one behind the other"
        # Of an ACK, and of each refusal in it.
        ACK_BYTES = 32
        REFUSAL_BYTES = 12
        # Milliseconds after which one that was refused may succeed.
        RETRY_AFTER = {Wire::Code::QUEUE_FULL => 1000, Wire::Code::OVERLOADED => 250, Wire::Code::DISK_FULL => 5000, Wire::Code::LIMIT => 5000}.freeze
        private_constant :CONTROL, :PROPERTIES, :ACK_BYTES, :REFUSAL_BYTES, :RETRY_AFTER

        private

        def take_message(session, frame, bytes)
          level = level_of(frame)
          key = understood(session, frame, level) or return
          return invalid(session, frame.id, PROPERTIES) unless well_formed?(frame)
          sequence = frame.sequence
          return duplicate(session, frame, level, bytes) if taken?(session, sequence)
          queue = destination(session, frame, level, key)
          return say_no(session, frame.id, queue) unless queue.is_a?(Queue)
          message = objection(session, queue, frame.content, level, sequence) ||
            admit(session, queue, frame, frame.content, frame.properties_size, level, sequence)
          return say_no(session, frame.id, [message, sentence(message, queue, frame.content)]) if message.is_a?(Integer)
          acknowledge_message(session, frame.id, level, message.id, bytes)
          dispatch(queue)
          spare_memory(message)
        end

        def take_batch(session, frame, bytes)
          level = level_of(frame)
          key = understood(session, frame, level) or return
          size = frame.messages.size
          return invalid(session, frame.id, "a SEND_BATCH has 1 to 65,535 messages, not #{size}") unless size.between?(1, 65_535)
          if ACK_BYTES + REFUSAL_BYTES * size > session.max_frame
            return deny(session, frame.id, Wire::Code::TOO_BIG, "its ACK may become larger than the largest frame of this client")
          end
          queue = destination(session, frame, level, key)
          unless queue.is_a?(Queue)
            return say_no(session, frame.id, queue) unless repeats?(session, frame)
            bar = queue.first
            level = [level, @highest_level].min
          end
          taken, duplicates, refusals = take_all(session, queue, frame, level, bar)
          value = (duplicates.any? || taken.empty?) ? 0 : taken.first.id
          count = size - refusals.size
          # It waits for the level of what was taken now, and says no more than holds for all.
          reached = Level::MEMORY if duplicates.any? { |number| session.producer.volatile?(number) }
          answer(session, Wire::Type::SEND_BATCH, frame.id, level, count: count, value: value, messages: size, bytes: bytes)
            &.add(reached: reached, duplicate: duplicates.any?, refusals: refusals)
          dispatch(queue) unless bar
          taken.each { |message| spare_memory(message) }
        end

        # @param bar [Integer, nil] why nothing is taken that was not before
        def take_all(session, queue, frame, level, bar)
          sequence = frame.sequence
          duplicates = []
          taken = []
          refusals = []
          frame.messages.each_with_index do |item, index|
            number = sequence.zero? ? 0 : sequence + index
            trouble = Wire::Code::INVALID unless well_formed?(item)
            if trouble.nil? && taken?(session, number)
              @duplicates += 1
              next duplicates << number
            end
            trouble ||= bar || objection(session, queue, item.content, level, number) ||
              admit(session, queue, frame, item.content, item.properties_size, level, number)
            next taken << trouble unless trouble.is_a?(Integer)
            # What follows may not be taken before a message that is sent again.
            bar = trouble if Wire::Code.later?(trouble)
            @refused[trouble] += 1
            refusals << [index, trouble, retry_after(trouble)]
          end
          [taken, duplicates, refusals]
        end

        def level_of(frame) = (frame.level == Level::USUAL) ? @level : frame.level

        # What no message may say, also one that was taken before.
        #
        # @return [String, nil] key of where it goes; nil: it was refused
        def understood(session, frame, level)
          return invalid(session, frame.id, "a priority is 0 to 9, not #{frame.priority}") if frame.priority > 9
          return invalid(session, frame.id, "a level is 0, 1, 2 or 255, not #{level}") if level > Level::SYNCED
          return invalid(session, frame.id, "messages are numbered by clients that have an identity") if frame.sequence > 0 && session.producer.nil?
          key_for(session, frame.id, frame.destination, frame.kind)
        end

        # @return [Queue, Array(Integer, String)] where it goes; or code and sentence: nothing new is taken
        def destination(session, frame, level, key)
          return [Wire::Code::DRAINING, "the broker is about to stop"] if @draining
          if session.unanswered >= @limits.window_messages || session.unanswered_bytes >= @limits.window_bytes
            return [Wire::Code::OVERLOADED, "too many messages have no answer yet"]
          end
          return [Wire::Code::LEVEL, "this broker has no storage: there is level memory alone"] if level > @highest_level
          find_place(session, frame.destination, frame.kind, key, Permission::SEND)
        end

        # @return [Queue, nil] nil: it was refused
        def place_for(session, id, name, kind, right)
          key = key_for(session, id, name, kind) or return
          queue = find_place(session, name, kind, key, right)
          queue.is_a?(Queue) ? queue : say_no(session, id, queue)
        end

        # @return [String, nil] nil: it was refused
        def key_for(session, id, name, kind)
          return invalid(session, id, "a destination is of kind 0 or 1, not #{kind}") if kind > 1
          key = Queue.key(name, kind)
          return key if @queues.key?(key) || name?(name, kind)
          invalid(session, id, "a name has 1 to 255 bytes of UTF-8 without control characters, and a queue's does not begin with @")
        end

        # @return [Queue, Array(Integer, String)] or code and sentence
        def find_place(session, name, kind, key, right)
          own = kind == 1 && right == Permission::RECEIVE
          return [Wire::Code::FORBIDDEN, "this client may not do this with #{text(key)}"] unless own || session.may?(right, key)
          queue_for(name, kind, key) || [Wire::Code::LIMIT, "there are #{@limits.max_queues} queues, as many as there may be"]
        end

        # @return [nil]
        def say_no(session, id, (code, sentence)) = deny(session, id, code, sentence, retry_after: retry_after(code))

        def retry_after(code) = (code == Wire::Code::DRAINING) ? @draining : RETRY_AFTER.fetch(code, 0)

        def name?(name, kind)
          name.bytesize.between?(1, 255) && !name.match?(CONTROL) && (kind == 1 || !name.start_with?("@")) && utf8?(name)
        end

        def utf8?(text) = text.dup.force_encoding(Encoding::UTF_8).valid_encoding?

        def well_formed?(item) = item.properties_size.zero? || Wire::Properties.well_formed?(item.content, item.properties_size)

        def taken?(session, sequence) = sequence > 0 && session.producer.taken?(sequence)

        # @return [Boolean] of the messages of a batch, one was taken before
        def repeats?(session, frame) = frame.sequence > 0 && frame.messages.each_index.any? { |index| taken?(session, frame.sequence + index) }

        # @return [Integer, nil] why a message is not taken whose number was not
        def objection(session, queue, content, level, sequence)
          return Wire::Code::SEQUENCE if sequence > 0 && session.producer.ahead?(sequence)
          return Wire::Code::TOO_BIG if push_bytes(content.bytesize) > @limits.max_frame || larger_than_queue?(content.bytesize) ||
            (level > 0 && content.bytesize > @kept_most)
          return Wire::Code::QUEUE_FULL if filled?(queue, content.bytesize)
          return Wire::Code::OVERLOADED if memory_bytes + Message::INDEX_BYTES + (level.zero? ? content.bytesize : 0) > @limits.max_memory
          Wire::Code::DISK_FULL if level > 0 && @ledger.full?
        end

        def larger_than_queue?(bytes) = @limits.max_queue_bytes > 0 && bytes > @limits.max_queue_bytes

        def filled?(queue, bytes)
          (@limits.max_queue_messages > 0 && queue.messages >= @limits.max_queue_messages) ||
            (@limits.max_queue_bytes > 0 && queue.bytes + bytes > @limits.max_queue_bytes)
        end

        # @return [Message, Integer] or why not
        def admit(session, queue, frame, content, properties_size, level, sequence)
          boot if @ledger && @next_message >= @reserved_messages
          message = Message.new(@next_message, queue, @wall, frame.priority, level, properties_size, content)
          message.due = @wall + frame.delay if frame.delay > 0
          message.expires = @wall + frame.time_to_live if frame.time_to_live > 0
          if sequence > 0
            message.sequence = sequence
            message.producer = session.producer.number
          end
          return Wire::Code::LIMIT unless sequence.zero? || remember_producer(session.producer, durable: level > 0)
          @ledger.enqueue(message) if level > 0
          session.producer.take(sequence, volatile: level.zero? && !@ledger.nil?) if sequence > 0
          @next_message += 1
          settle(message, frame)
          message
        rescue Log::Journal::Full
          Wire::Code::DISK_FULL
        rescue LimitExceeded
          Wire::Code::TOO_BIG
        end

        def settle(message, frame)
          queue = message.queue
          make(queue) unless queue.made
          @messages[message.id] = message
          queue.sent += 1
          queue.bytes += message.size
          @bytes += message.size
          @content_bytes += message.size
          @received[message.level] += 1
          message.expiry_slot = @expiries.add(@now + frame.time_to_live / 1000.0, message) if frame.time_to_live > 0
          wait(message, frame.delay)
        end

        # What stands on the disk need not stand in memory until its turn comes: a quarter is for it, as far as there is room.
        def spare_memory(message)
          return if message.segment.nil? || message.state == :out || message.content.nil?
          return if @content_bytes <= @limits.max_memory / 4 && memory_bytes <= @limits.max_memory
          message.content = nil
          @content_bytes -= message.size
        end

        def index_bytes = @messages.size * Message::INDEX_BYTES

        def memory_bytes = @content_bytes + index_bytes

        # What is in memory alone reaches no other level, whatever is asked for now.
        def duplicate(session, frame, level, bytes)
          @duplicates += 1
          level = Level::MEMORY if @ledger.nil? || session.producer.volatile?(frame.sequence)
          answer(session, Wire::Type::SEND, frame.id, level, messages: 1, bytes: bytes)&.add(duplicate: true)
        end

        def sentence(code, queue, content)
          case code
          when Wire::Code::SEQUENCE then "this number is more than #{Producer::MOST} above what is settled: use those below first"
          when Wire::Code::QUEUE_FULL then "the queue #{text(queue.key)} is full: it holds #{queue.messages} messages"
          when Wire::Code::OVERLOADED then "messages take as much memory as broker_max_memory permits"
          when Wire::Code::DISK_FULL then @ledger.full_of
          when Wire::Code::LIMIT then Identifying::ALL_CONNECTED
          when Wire::Code::TOO_BIG then too_big(content.bytesize)
          end
        end

        # Of what a SEND brings, the frame may be as large as is permitted, and the PUSH that delivers it larger than that.
        def too_big(bytes)
          may =
            if push_bytes(bytes) > @limits.max_frame
              "a message may have #{@limits.max_frame - push_bytes(0)}, so that the PUSH that delivers it is no larger than the broker's largest frame of #{@limits.max_frame}"
            elsif larger_than_queue?(bytes)
              "a queue may have #{@limits.max_queue_bytes} in all (broker_max_queue_bytes)"
            else
              "a message on the disk may have #{@kept_most}, so that it fits into a segment beside #{@max_identities} identities: " \
                "raise broker_segment_bytes, or lower broker_max_identities"
            end
          "properties and payload have #{bytes} bytes; #{may}"
        end
      end
    end
  end
end
