# frozen_string_literal: true

require_relative "../../log/journal"
require_relative "ledger"
require_relative "message"
require_relative "producer"
require_relative "queue"
require_relative "records"

module Hikyaku
  module Broker
    class RubyEngine
      # What a restart finds: how the journal is read, and what is written at the beginning of each segment and at the end.
      module Remembering
        # Numbers that are set aside at a time, so that none is used twice though not each is written down.
        MESSAGES_AHEAD = 1 << 20
        SESSIONS_AHEAD = 1 << 10
        # The longest delay that a NACK can have said, in ms.
        LONGEST = 0xFFFF_FFFF
        private_constant :MESSAGES_AHEAD, :SESSIONS_AHEAD, :LONGEST

        private

        def open_storage(storage, segment_bytes, files, report)
          @numbers = {}
          @producer_numbers = {}
          @late = {}
          @due_position = 1
          @recalled_segment = 0
          @ledger = Ledger.new(@limits.max_storage)
          options = {segment_bytes: segment_bytes, files: files, report: report}.compact
          options.delete(:segment_bytes) if segment_bytes == 0
          @ledger.open(storage, remember: method(:remember), **options) { |record| recall(record) }
          wake_up
          @numbers = @producer_numbers = @late = nil
        end

        # The first records of each segment. A process that goes on in a segment, for want of room, finds most of them there.
        def remember(ledger)
          prune_producers if @numbers
          boot(ledger)
          each_recorded_producer { |producer| record_producer(producer, ledger) unless producer.segment == ledger.current }
        end

        def boot(ledger = @ledger)
          @reserved_messages = @next_message + MESSAGES_AHEAD
          @reserved_sessions = @next_session + SESSIONS_AHEAD
          ledger.say(Records::BOOT, [@reserved_messages, @reserved_sessions].pack("Q<Q<"))
        end

        # Positions that are missing before a record are those of a SKIP: nobody had synced what follows in that segment, either.
        def look_for_hole(record)
          follows = record.segment == @recalled_segment
          missing = record.position != @due_position && record.segment <= @recalled_segment + 1
          @behind_hole = missing || (follows && @behind_hole)
          @due_position = record.position + 1
          @recalled_segment = record.segment
        end

        def recall(record)
          look_for_hole(record)
          case record.type
          when Records::ENQUEUE then recall_message(record)
          when Records::FREE then record.body.unpack("Q<*").each { |id| (message = @messages.delete(id)) && @ledger.freed(message, record.segment) }
          when Records::STATE then recall_state(record)
          when Records::QUEUE then recall_queue(record.segment, *Records.parse_queue(record.body))
          when Records::QUEUE_GONE then (queue = @numbers.delete(record.body.unpack1("V"))) && @queues.delete(queue.key)
          when Records::PRODUCER then recall_producer(record.segment, *Records.parse_producer(record.body))
          when Records::PRODUCER_GONE then (producer = @producer_numbers.delete(record.body.unpack1("V"))) && @producers.delete(producer.identity)
          when Records::BOOT
            messages, sessions = record.body.unpack("Q<Q<")
            @next_message = messages if messages > @next_message
            @next_session = sessions if sessions > @next_session
          end
        end

        def recall_message(record)
          message = Records.parse_enqueue(record.flags, record.body, @numbers)
          return lose(record.body.unpack1("Q<")) if message.nil? || nobodys?(message)
          # A salvage has parted them: the segment with its queue's name stays as long as this one.
          @ledger.keep(message.queue.named, record.segment) unless message.queue.named == record.segment
          id = message.id
          older = @messages[id]
          @ledger.copied(older) if older
          @messages[id] = message
          @next_message = id + 1 if id >= @next_message
          @ledger.stands(message, record.place, record.body.bytesize)
          recall_sequence(message.sequence, message.producer) if message.sequence > 0
        end

        # Who has numbered it is not known: it might be taken again.
        def nobodys?(message) = @behind_hole && message.sequence > 0 && !@producer_numbers.key?(message.producer)

        # What it needs was lost with what nobody had synced: so is the message.
        def lose(id)
          @messages_lost += 1
          @next_message = id + 1 if id >= @next_message
        end

        def recall_sequence(sequence, number)
          producer = @producer_numbers[number] or return
          producer.take(sequence) unless producer.taken?(sequence)
          @producers[producer.identity] = producer if @producers.delete(producer.identity)
        end

        def recall_state(record)
          message, delay = Records.parse_state(record.flags, record.body, @messages)
          return unless message
          @late[message.id] = [message.due, delay || LONGEST]
          @ledger.speaks(message, record.segment)
        end

        def recall_queue(segment, number, kind, name)
          @next_queue = number + 1 if number >= @next_queue
          queue = @numbers[number] ||= @queues[Queue.key(name, kind)] ||= Queue.new(name, kind, number)
          queue.made = true
          queue.named = segment
        end

        def recall_producer(segment, number, identity, rest)
          @next_producer = number + 1 if number >= @next_producer
          known = @producers.delete(identity)
          if @behind_hole
            # Its map may speak of messages that were lost before it.
            known = Producer.new(number, identity) unless known&.number == number
            known.epoch = rest[:epoch]
          else
            known = Producer.new(number, identity, **rest)
            known.segment = segment
          end
          @producers[identity] = @producer_numbers[number] = known
        end

        # Everything was read: messages take their places, in the order of their ids.
        def wake_up
          ids = @messages.keys.sort
          @messages = ids.to_h { |id| [id, @messages[id]] } unless ids == @messages.keys # copies may stand out of order
          @messages.each_value { |message| place(message) }
          # A queue without messages need not be there: its name stands somewhere, and nobody uses it yet.
          @queues.delete_if { |_, queue| queue.idle? }
        end

        def place(message)
          message.queue.bytes += message.size
          @bytes += message.size
          @content_bytes += message.size
          if message.state == :dead
            bury(message, message.reason, message.words)
          else
            message.expires = 0 if message.reason > 0
            expire_later(message)
            due = message.due
            wait(message, due.zero? ? 0 : remaining(due, longest_delay(message)))
            message.due = due if message.state == :delayed # copies say it as it was
          end
          spare_memory(message)
        end

        def expire_later(message)
          return if message.expires.zero?
          left = remaining(message.expires, span(message.sent_at, message.expires))
          message.expiry_slot = @expiries.add(@now + left / 1000.0, message)
        end

        # The clock may have been set in the meantime: no more is left than there was.
        def remaining(at, most) = at.zero? ? 0 : (at - @wall).clamp(0, most)

        # What a STATE has said of it, or an ENQUEUE. A copy of what a STATE said does not know it better.
        def longest_delay(message)
          due, most = @late[message.id]
          own = span(message.sent_at, message.due)
          return own unless due
          (due == message.due) ? most : own
        end

        # How long it was from when it was sent, in ms. Before that it can only be when the clock was set back: nobody knows.
        def span(sent_at, at) = (at > sent_at) ? [at - sent_at, LONGEST].min : LONGEST

        # What is in memory alone is written down, too, and what was sent.
        def write_all_down
          @messages.each_value do |message|
            next if message.segment
            message.sequence = 0 # its number stands in its PRODUCER
            write_down(message)
          end
          @idle_producers.each_key { |producer| @ledger.say(Records::PRODUCER, Records.producer(producer, all: true)) }
        rescue Log::Journal::Full
          nil # level memory promises nothing
        end

        def write_down(message)
          @ledger.enqueue(message)
        rescue LimitExceeded
          nil # it fits into no segment
        end
      end
    end
  end
end
