# frozen_string_literal: true

require_relative "errors"
require_relative "pending"
require_relative "receipt"
require_relative "../wire/code"
require_relative "../wire/type"

module Hikyaku
  module Broker
    class Client
      # What was sent and not answered: it gives messages their numbers, keeps them within the broker's window, and says what
      # is to be sent again over a new connection (docs/protocol.md, section 6).
      #
      #     settled ... | 17  18  19  20  21 |  next
      #                   │   │   └ free: refused, to be used again
      #                   │   └ unanswered
      #                   └ the lowest: no number above it + 4,095 may be used
      #
      # A number may be in doubt: an earlier client of this identity, whose messages nobody remembers, may have used it, or the broker
      # has forgotten which were used. When it was, the broker says DUPLICATE, and the message takes another number:
      # rather twice than never.
      #
      # What a broker has forgotten is seen when it greets, unless the lowest number waits for its answer. Then it is seen when the broker
      # says SEQUENCE: some number below was forgotten, and all that are not unanswered are tried once more.
      #
      # Every method is called with the client's lock.
      class Outbox
        # Numbers that the broker remembers above the lowest that is not settled.
        MAP = 4096
        SHORT = 0xFFFF
        private_constant :MAP, :SHORT

        attr_reader :window_messages

        def initialize(numbered:, known:)
          @numbered = numbered
          @known = known
          @rising = {}
          @reused = {}
          @free = []
          @next = 1
          @orders = 0
          @doubtful = 0
          @messages = 0
          @bytes = 0
          @window_messages = 0
          @window_bytes = 0
          @low = @used = 0
          @looked_below = false
        end

        def empty? = @messages.zero?

        def size = @messages

        def quiet? = each_unanswered.none? { |pending| pending.transmitted && !pending.held && !pending.waiting }

        def fits?(count, bytes)
          return false if @window_messages.zero?
          return true if @messages.zero? && reach?(count)
          @messages + count <= @window_messages && @bytes + bytes <= @window_bytes && reach?(count)
        end

        # Several messages in one frame have numbers that follow each other, which nobody has used.
        def batches? = !@numbered || (@free.empty? && @next > @doubtful)

        def add(pending)
          @messages += pending.count
          @bytes += pending.bytes
          pending.order = (@orders += 1)
          number(pending)
        end

        # Nobody waits for it any more.
        def withdraw(pending)
          return false if pending.transmitted
          release(pending.number, pending.count) if take(pending.number)
          true
        end

        def acknowledge(ack)
          return acknowledge_one(ack, ack.id, ack.value) if ack.last == ack.id
          raise NotUnderstood, "the broker acknowledges messages #{ack.id} to #{ack.last}, which were not sent" unless (ack.last - ack.id).between?(1, SHORT)
          (ack.id..ack.last).each_with_index.flat_map { |number, index| acknowledge_one(ack, number, ack.value + index) }
        end

        def refuse(id, error)
          pending = @rising[id] || @reused[id] or return []
          if error.is_a?(Draining)
            pending.held = true
            return []
          end
          take(id)
          release(id, pending.count)
          return [add_again(pending)] if error.is_a?(OutOfSequence) && pending.count == 1 && below?(id)
          pending.fail(error)
          []
        end

        # A new connection: what it permits, and what is to be sent again.
        def connected(welcome)
          @window_messages = [welcome.window_messages, 1].max
          @window_bytes = welcome.window_bytes
          again = each_unanswered.sort_by { |pending| [pending.order, pending.offset] }
          return unnumbered(again) unless @numbered
          begin_at(welcome.low)
          too_big, again = again.partition { |pending| pending.whole.bytes > welcome.max_frame }
          too_big.each { |pending| drop(pending, Refused.of(Wire::Code::TOO_BIG)) }
          again.flat_map { |pending| within_reach(pending, welcome.low + MAP) }
        end

        # The end: nothing is sent again.
        def fail_all
          each_unanswered.each { |pending| drop(pending, yield(pending)) }
        end

        private

        def each_unanswered = @rising.values + @reused.values

        def reach?(count) = !@numbered || (count == 1 && !@free.empty?) || @next + count - 1 < lowest + MAP

        # The first key of a Hash is found at once; what is used again is rare.
        def lowest = [@rising.first&.first, @reused.keys.min, @free.first].compact.min || @next

        def number(pending)
          if @numbered && pending.count == 1 && !@free.empty?
            number = @free.shift
            @reused[number] = pending
          else
            number = @next
            @next += pending.count
            @rising[number] = pending
          end
          pending.doubtful = number <= @doubtful
          pending.number = number
          pending
        end

        def take(number)
          pending = @rising.delete(number) || @reused.delete(number) or return
          @messages -= pending.count
          @bytes -= pending.bytes
          pending
        end

        def drop(pending, error)
          take(pending.number)
          release(pending.number, pending.count)
          pending.fail(error)
        end

        # Numbers that were not used are there to be used.
        def release(number, count)
          return unless @numbered
          if number + count >= @next
            # What is above the next is nobody's any more: the broker has forgotten it.
            @next = [number, @next].min
            @next = [@next, @free.pop].min while @free.last && @free.last >= @next - 1
          else
            @free = (@free + (number...number + count).to_a).sort
          end
        end

        def acknowledge_one(ack, number, id)
          pending = take(number) or return []
          if ack.duplicate? && pending.doubtful
            pending.transmitted = false
            return [add(pending)]
          end
          return acknowledge_batch(pending, ack) unless ack.request == Wire::Type::SEND
          pending.resolve(Receipt.new((id unless ack.duplicate?), ack.level, duplicate: ack.duplicate?))
          []
        end

        def acknowledge_batch(pending, ack)
          # The highest first: what was refused to the end is sent again in one frame.
          ack.refusals.reverse_each { |refusal| release(ack.id + refusal.index, 1) if refusal.index < pending.count }
          results = results(pending, ack)
          again = ack.refusals.filter_map do |refusal|
            next unless refusal.index < pending.count && later?(refusal, ack.id + refusal.index)
            results[refusal.index] = nil
            add_again(pending.part(refusal.index, 1))
          end
          again.empty? ? pending.resolve(results) : pending.collect(0, results)
          again
        end

        # It will be taken: under a lower number, or by the broker that comes after one that is about to stop.
        def later?(refusal, number)
          case refusal.code
          when Wire::Code::DRAINING then true
          when Wire::Code::SEQUENCE then below?(number)
          end
        end

        # One for each message of a batch, in order.
        def results(pending, ack)
          refused = ack.refusals.to_h { |refusal| [refusal.index, refusal] }
          id = ack.value unless ack.duplicate?
          Array.new(pending.count) do |index|
            if (refusal = refused[index])
              Refused.of(refusal.code, retry_after: (refusal.retry_after / 1000.0 if refusal.retry_after.positive?))
            else
              Receipt.new(id, ack.level, duplicate: ack.duplicate?).tap { id += 1 if id }
            end
          end
        end

        # What the broker may have keeps its numbers. Those above its map it has not: their messages take others, each in a frame
        # of its own, as these may be in doubt.
        def within_reach(pending, last)
          number = pending.number
          return [pending] if number + pending.count - 1 <= last
          take(number)
          return [add_again(pending)] if pending.count == 1
          kept = [last - number + 1, 0].max
          parts = (kept...pending.count).map { |index| pending.part(index, 1) }
          parts.unshift(keep(pending.part(0, kept), number)) if kept.positive?
          parts.each { |part| add_again(part) unless part.number }
        end

        def keep(part, number)
          @messages += part.count
          @bytes += part.bytes
          part.doubtful = false
          part.number = number
          @reused[number] = part
        end

        # In its old place among the others.
        def add_again(pending)
          order = pending.order
          pending.transmitted = false
          add(pending).tap { pending.order = order }
        end

        def below?(number)
          unless @looked_below
            @looked_below = true
            @free |= (@low + 1..[@used, @next - 1].min).to_a - unanswered_numbers
            @free.sort!
            @doubtful = [@doubtful, @next - 1].max
          end
          (@free.first || @next) < number
        end

        def unanswered_numbers = each_unanswered.flat_map { |pending| (pending.number...pending.number + pending.count).to_a }

        # Without numbers nobody can tell what was taken.
        def unnumbered(again)
          sent, waiting = again.partition { |pending| pending.transmitted && !pending.held }
          sent.each { |pending| drop(pending, OutcomeUnknown.new("the connection broke before the answer came: the message may have been taken or not")) }
          waiting
        end

        # Where numbers begin after a HELLO. A broker that was restarted may have forgotten those of level memory: they must be
        # used once more, or its map comes to its end.
        def begin_at(low)
          @low = low
          @looked_below = false
          count_from(low)
          @used = @next - 1
        end

        def count_from(low)
          if @orders.zero? && @next == 1
            @next = low + 1
            @doubtful = low + MAP if @known
          elsif low + 1 < lowest
            used = @next - 1
            @doubtful = [@doubtful, used].max
            @free = (low + 1..[used, low + MAP].min).to_a - unanswered_numbers
            @next = low + MAP + 1 if used > low + MAP
          end
        end
      end
    end
  end
end
