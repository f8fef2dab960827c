# frozen_string_literal: true

require_relative "../errors"
require_relative "message"

module Hikyaku
  module Broker
    class RubyEngine
      # The records of the broker's journal as bytes (docs/journal.md, "What the broker keeps").
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

        # A flag of STATE.
        DELAYED = 1

        # The field `state` of STATE.
        WAITS = 0
        DEAD = 1

        # Bytes of an ENQUEUE that are always there.
        ENQUEUE_BYTES = 24
        # Bytes of a STATE that are always there.
        STATE_BYTES = 24

        module_function

        # Returns flags and body.
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
          # A copy does without: its segment begins with the numbers of its producer that were taken.
          if message.sequence > 0 && !copy
            flags |= SEQUENCED
            body << [message.sequence, message.producer].pack("Q<V")
          end
          if message.changed?
            flags |= CHANGED
            body << [message.failures, message.crashes, message.returns, state_of(message), message.death, message.reason.bytesize, 0, message.reason].pack("vvvCCvva*")
          end
          [flags, body << content]
        end

        # Returns the message as it was, or nil where its queue is not among `queues`, by number.
        def parse_enqueue(flags, body, queues)
          id, sent_at, number, priority, level, properties_size = body.unpack("Q<Q<VCCv")
          # The record that named the queue was lost with a tail that was never synced, and so is the message.
          queue = queues[number] or return
          message = Message.new(id, queue, sent_at, priority, level, properties_size, content(flags, body) + "")
          parse_optional(message, flags, body) if flags.anybits?(DUE | EXPIRES | SEQUENCED | CHANGED)
          message
        end

        # Properties and payload of an ENQUEUE.
        def content(flags, body)
          at = ENQUEUE_BYTES
          at += 8 if flags.anybits?(DUE)
          at += 8 if flags.anybits?(EXPIRES)
          at += 12 if flags.anybits?(SEQUENCED)
          at += 12 + body.unpack1("v", offset: at + 8) if flags.anybits?(CHANGED)
          body.byteslice(at, body.bytesize)
        end

        # Reads the fields of an ENQUEUE that its flags name.
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

        # Takes over the fields of a STATE beside the time, or that part of an ENQUEUE.
        def take_changes(message, failures, crashes, returns, state, death, reason)
          message.restore_counts(failures, crashes, returns)
          message.state = (state == DEAD) ? :dead : :new
          message.death = death
          message.reason = reason
        end

        # Returns flags and body. `delay`: milliseconds that the message waits; 0: it does not.
        def state(message, delay)
          body = [message.id, message.due, message.failures, message.crashes, message.returns, state_of(message), message.death].pack("Q<Q<vvvCC")
          body << [delay].pack("V") if delay > 0
          [(delay > 0) ? DELAYED : 0, body << message.reason.b]
        end

        # Changes the message and returns it with the milliseconds that its delay had at first, if they are known; nil where it is not
        # among `messages`.
        def parse_state(flags, body, messages)
          id, due, *changes = body.unpack("Q<Q<vvvCC")
          message = messages[id] or return
          message.due = due
          delay = body.unpack1("V", offset: STATE_BYTES) if flags.anybits?(DELAYED)
          take_changes(message, *changes, body.byteslice((delay ? STATE_BYTES + 4 : STATE_BYTES)..))
          [message, delay]
        end

        def queue(queue) = [queue.number, queue.kind, 0, queue.name.bytesize, queue.name].pack("VCCva*")

        # Returns number, kind and name.
        def parse_queue(body)
          number, kind, _, size = body.unpack("VCCv")
          [number, kind, body.byteslice(8, size)]
        end

        # `all`: numbers of messages of level memory, too.
        def producer(producer, all: false)
          low, map = producer.snapshot(all: all)
          [producer.number, producer.identity.bytesize, map.bytesize, producer.epoch, low, producer.identity, map].pack("VvvQ<Q<a*a*")
        end

        # Returns number, identity and the other fields.
        def parse_producer(body)
          number, identity, map, epoch, low = body.unpack("VvvQ<Q<")
          [number, body.byteslice(24, identity), {epoch: epoch, low: low, map: body.byteslice(24 + identity, map)}]
        end

        # The body of QUEUE_GONE and PRODUCER_GONE.
        def gone(number) = [number, 0].pack("VV")

        def state_of(message) = (message.state == :dead) ? DEAD : WAITS
      end
    end
  end
end
