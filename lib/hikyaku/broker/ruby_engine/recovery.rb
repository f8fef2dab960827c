# frozen_string_literal: true

require_relative "../errors"
require_relative "../../log/journal"
require_relative "producer"
require_relative "queue"
require_relative "records"

module Hikyaku
  module Broker
    class RubyEngine
      # Reads the journal at the start, and writes what each segment begins with and what a stop leaves behind, so that it can.
      class Recovery
        # Numbers that are reserved at a time, so that none is used twice though not each is written.
        RESERVED_MESSAGES = 1 << 20
        RESERVED_SESSIONS = 1 << 10
        # The longest delay that a NACK can have, in milliseconds.
        MAX_DELAY = 0xFFFF_FFFF
        private_constant :RESERVED_MESSAGES, :RESERVED_SESSIONS, :MAX_DELAY

        # Messages that could not be read, since something that they need was never synced.
        attr_reader :lost

        def initialize(parts)
          @parts = parts
          @lost = 0
        end

        # Reads all there is. `options` are those of Log::Journal.open.
        def open(store, folder, **options)
          @store = store
          @queues = {}
          @producers = {}
          @delays = {}
          @due_position = 1
          @segment = 0
          @reading = true
          store.open(folder, on_begin: method(:begin_segment), **options) { |record| read(record) }
          @parts.messages.sort
          @parts.messages.each { |message| place(message) }
          @parts.queues.drop_idle
        ensure
          @reading = false
          @queues = @producers = @delays = nil
        end

        def reserve_numbers(store = @store)
          messages = @parts.messages
          sessions = @parts.sessions
          messages.reserved = messages.next_number + RESERVED_MESSAGES
          sessions.reserved = sessions.next_number + RESERVED_SESSIONS
          store.append(Records::BOOT, [messages.reserved, sessions.reserved].pack("Q<Q<"))
        end

        # Writes messages of level memory, and all numbers that were taken, before an orderly stop.
        def write_everything
          @parts.messages.each do |message|
            next if message.segment
            message.sequence = 0 # its number stands in its PRODUCER
            write(message)
          end
          @parts.producers.idle.each { |producer| @store.append(Records::PRODUCER, Records.producer(producer, all: true)) }
        rescue Log::Journal::Full
          nil # level memory promises nothing
        end

        private

        def write(message)
          @store.append_message(message)
        rescue LimitExceeded
          nil # it fits into no segment
        end

        # A process that goes on in a segment, for want of room, finds most of these records there.
        def begin_segment(store)
          if @reading
            @parts.producers.prune
            @reading = false
          end
          reserve_numbers(store)
          @parts.producers.repeat_in(store)
        end

        def read(record)
          look_for_gap(record)
          case record.type
          when Records::ENQUEUE then read_message(record)
          when Records::FREE then record.body.unpack("Q<*").each { |id| (message = @parts.messages.delete(id)) && @store.freed(message, record.segment) }
          when Records::STATE then read_state(record)
          when Records::QUEUE then read_queue(record.segment, *Records.parse_queue(record.body))
          when Records::QUEUE_GONE then (queue = @queues.delete(record.body.unpack1("V"))) && @parts.queues.delete(queue)
          when Records::PRODUCER then read_producer(record.segment, *Records.parse_producer(record.body))
          when Records::PRODUCER_GONE then (producer = @producers.delete(record.body.unpack1("V"))) && @parts.producers.delete(producer.identity)
          when Records::BOOT then read_numbers(*record.body.unpack("Q<Q<"))
          end
        end

        # Positions that are missing before a record are those of a SKIP: what follows in that segment was not synced either.
        def look_for_gap(record)
          follows = record.segment == @segment
          missing = record.position != @due_position && record.segment <= @segment + 1
          @behind_gap = missing || (follows && @behind_gap)
          @due_position = record.position + 1
          @segment = record.segment
        end

        def read_numbers(messages, sessions)
          @parts.messages.next_number = messages if messages > @parts.messages.next_number
          @parts.sessions.next_number = sessions if sessions > @parts.sessions.next_number
        end

        def read_message(record)
          message = Records.parse_enqueue(record.flags, record.body, @queues)
          return lose(record.body.unpack1("Q<")) if message.nil? || without_producer?(message)
          # A salvage has parted them: the segment with its queue's name stays as long as this one.
          @store.keep(message.queue.named, record.segment) unless message.queue.named == record.segment
          older = @parts.messages.restore(message)
          @store.copied(older) if older
          @store.stored(message, record.place, record.body.bytesize)
          read_sequence(message.sequence, message.producer) if message.sequence > 0
        end

        # Where its producer is not known, its number could be taken twice.
        def without_producer?(message) = @behind_gap && message.sequence > 0 && !@producers.key?(message.producer)

        def lose(id)
          @lost += 1
          @parts.messages.restore_gone(id)
        end

        def read_sequence(sequence, number)
          producer = @producers[number] or return
          producer.take(sequence) unless producer.taken?(sequence)
          @parts.producers.restore(producer) if @parts.producers.delete(producer.identity)
        end

        def read_state(record)
          message, delay = Records.parse_state(record.flags, record.body, @parts.messages)
          return unless message
          @delays[message.id] = [message.due, delay || MAX_DELAY]
          @store.mentions(message, record.segment)
        end

        def read_queue(segment, number, kind, name)
          queues = @parts.queues
          queues.next_number = number + 1 if number >= queues.next_number
          queue = @queues[number] ||= queues[Queue.key(name, kind)] || Queue.new(name, kind, number)
          queues.register(queue)
          queue.named = segment
        end

        def read_producer(segment, number, identity, rest)
          producers = @parts.producers
          producers.next_number = number + 1 if number >= producers.next_number
          known = producers.delete(identity)
          if @behind_gap
            # Its map may speak of messages that were lost before it.
            known = Producer.new(number, identity) unless known&.number == number
            known.epoch = rest[:epoch]
          else
            known = Producer.new(number, identity, **rest)
            known.segment = segment
          end
          @producers[number] = known
          producers.restore(known)
        end

        # Puts a message into its place when everything was read.
        def place(message)
          messages = @parts.messages
          messages.account(message)
          if message.state == :dead
            messages.bury(message, message.death, message.reason)
          else
            message.expires = 0 if message.death > 0
            messages.expire_after(message, remaining(message.expires, span(message.sent_at, message.expires))) unless message.expires.zero?
            due = message.due
            messages.enqueue(message, due.zero? ? 0 : remaining(due, longest_delay(message)))
            message.due = due if message.state == :delayed # copies repeat it as it was
          end
          messages.release_content(message)
        end

        # The clock may have been set in the meantime: no more is left than there was.
        def remaining(wall, most) = wall.zero? ? 0 : (wall - @parts.clock.wall).clamp(0, most)

        # The delay that a STATE has, or an ENQUEUE. A copy of what a STATE said does not know it better.
        def longest_delay(message)
          due, most = @delays[message.id]
          own = span(message.sent_at, message.due)
          return own unless due
          (due == message.due) ? most : own
        end

        # How long it was from the SEND, in milliseconds. A time before that shows that the clock was set back: the span is not known.
        def span(sent_at, wall) = (wall > sent_at) ? [wall - sent_at, MAX_DELAY].min : MAX_DELAY
      end
    end
  end
end
