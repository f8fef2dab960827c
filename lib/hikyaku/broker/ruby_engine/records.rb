# frozen_string_literal: true

require_relative "../errors"
require_relative "message"

module Hikyaku
  module Broker
    class RubyEngine
      # The broker's records of a journal as bytes (docs/journal.md, "What the broker keeps").
      module Records
        ENQUEUE = 32
        FREE = 33
        STATE = 34
        QUEUE = 35
        QUEUE_GONE = 36
        PRODUCER = 37
        PRODUCER_GONE = 38
        BOOT = 39

        DUE = 1
        EXPIRES = 2
        SEQUENCED = 4
        CHANGED = 8
        COPY = 16

        # Of a STATE.
        DELAYED = 1

        # STATE's `state`.
        WAITS = 0
        DEAD = 1

        # Bytes of an ENQUEUE that are always there.
        ENQUEUE_BYTES = 24
        # Bytes of a STATE that are always there.
        STATE_BYTES = 24

        module_function

        # @param message [Message]
        # @param copy [Boolean]
        # @return [Array(Integer, String)] flags and body
        def enqueue(message, content, copy: false)
          flags = copy ? COPY : 0
          body = [message.id, message.sent_at, message.queue.number, message.priority, message.level, message.properties_size].pack("Q<Q<VCCv")
          if message.due > 0
            flags |= DUE
            body << [message.due].pack("Q<")
          end
          if message.expires > 0
            flags |= EXPIRES
            body << [message.expires].pack("Q<")
          end
          # A copy need not say it: its segment begins with what was taken of its sender.
          if message.sequence > 0 && !copy
            flags |= SEQUENCED
            body << [message.sequence, message.producer].pack("Q<V")
          end
          if message.changed?
            flags |= CHANGED
            body << [message.failures, message.crashes, message.returns, state_of(message), message.reason, message.words.bytesize, 0, message.words].pack("vvvCCvva*")
          end
          [flags, body << content]
        end

        # @param flags [Integer]
        # @param body [String]
        # @param queues [Hash{Integer => Queue}] by number
        # @return [Message, nil] as it was; nil: its queue is not among them
        def parse_enqueue(flags, body, queues)
          id, sent_at, number, priority, level, properties_size = body.unpack("Q<Q<VCCv")
          # What named the queue was lost with a tail that nobody had synced: so is the message.
          queue = queues[number] or return
          message = Message.new(id, queue, sent_at, priority, level, properties_size, content(flags, body) + "")
          parse_optional(message, flags, body) if flags.anybits?(DUE | EXPIRES | SEQUENCED | CHANGED)
          message
        end

        # @param flags [Integer]
        # @param body [String] of an ENQUEUE
        # @return [String] properties and payload
        def content(flags, body)
          at = ENQUEUE_BYTES
          at += 8 if flags.anybits?(DUE)
          at += 8 if flags.anybits?(EXPIRES)
          at += 12 if flags.anybits?(SEQUENCED)
          at += 12 + body.unpack1("v", offset: at + 8) if flags.anybits?(CHANGED)
          body.byteslice(at, body.bytesize)
        end

        # What an ENQUEUE says only where its flags say so.
        def parse_optional(message, flags, body)
          at = ENQUEUE_BYTES
          if flags.anybits?(DUE)
            message.due = body.unpack1("Q<", offset: at)
            at += 8
          end
          if flags.anybits?(EXPIRES)
            message.expires = body.unpack1("Q<", offset: at)
            at += 8
          end
          if flags.anybits?(SEQUENCED)
            message.sequence, message.producer = body.unpack("Q<V", offset: at)
            at += 12
          end
          return unless flags.anybits?(CHANGED)
          *changes, bytes = body.unpack("vvvCCv", offset: at)
          take_changes(message, *changes, body.byteslice(at + 12, bytes))
        end

        # What a STATE says beside the time, or that part of an ENQUEUE.
        #
        # @param message [Message]
        # @param state [Integer] WAITS or DEAD
        # @return [void]
        def take_changes(message, failures, crashes, returns, state, reason, words)
          message.came_back_before(failures, crashes, returns)
          message.state = (state == DEAD) ? :dead : :new
          message.reason = reason
          message.words = words
        end

        # @param message [Message]
        # @param delay [Integer] ms that it waits; 0: it does not
        # @return [Array(Integer, String)] flags and body
        def state(message, delay)
          body = [message.id, message.due, message.failures, message.crashes, message.returns, state_of(message), message.reason].pack("Q<Q<vvvCC")
          body << [delay].pack("V") if delay > 0
          [(delay > 0) ? DELAYED : 0, body << message.words.b]
        end

        # @param flags [Integer] of a STATE
        # @param body [String]
        # @param messages [Hash{Integer => Message}] by id
        # @return [Array(Message, Integer), nil] it is as that says from now on, and the ms that its delay had at first, if it is
        #   said; nil: it is not among them
        def parse_state(flags, body, messages)
          id, due, *changes = body.unpack("Q<Q<vvvCC")
          message = messages[id] or return
          message.due = due
          delay = body.unpack1("V", offset: STATE_BYTES) if flags.anybits?(DELAYED)
          take_changes(message, *changes, body.byteslice((delay ? STATE_BYTES + 4 : STATE_BYTES)..))
          [message, delay]
        end

        # @param queue [Queue]
        # @return [String]
        def queue(queue) = [queue.number, queue.kind, 0, queue.name.bytesize, queue.name].pack("VCCva*")

        # @param body [String]
        # @return [Array(Integer, Integer, String)] number, kind, name
        def parse_queue(body)
          number, kind, _, size = body.unpack("VCCv")
          [number, kind, body.byteslice(8, size)]
        end

        # @param producer [Producer]
        # @param all [Boolean] numbers of messages of level memory, too
        # @return [String]
        def producer(producer, all: false)
          low, map = producer.snapshot(all: all)
          [producer.number, producer.identity.bytesize, map.bytesize, producer.epoch, low, producer.identity, map].pack("VvvQ<Q<a*a*")
        end

        # @param body [String]
        # @return [Array(Integer, String, Hash)] number, identity, and the rest
        def parse_producer(body)
          number, identity, map, epoch, low = body.unpack("VvvQ<Q<")
          [number, body.byteslice(24, identity), {epoch: epoch, low: low, map: body.byteslice(24 + identity, map)}]
        end

        # @param number [Integer] of a queue or a producer
        # @return [String]
        def gone(number) = [number, 0].pack("VV")

        # @param message [Message]
        # @return [Integer]
        def state_of(message) = (message.state == :dead) ? DEAD : WAITS
      end
    end
  end
end
