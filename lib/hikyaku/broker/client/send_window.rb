# frozen_string_literal: true

require_relative "errors"
require_relative "receipt"
require_relative "../wire/code"
require_relative "../wire/type"

module Hikyaku
  module Broker
    class Client
      # The requests that the broker has not answered. The window numbers their messages, holds them within the broker's limits, and
      # selects what a new connection sends again (docs/protocol.md, section 6).
      #
      #     settled ... | 17  18  19  20  21 |  next
      #                   │   │   └ free: refused, to be used again
      #                   │   └ unanswered
      #                   └ the lowest: no number above it + 4,095 may be used
      #
      # A number is doubtful when an earlier client of this identity may have used it, or when the broker has forgotten which numbers
      # were used. If it was used, the broker answers DUPLICATE, and the message takes another number: a message may be delivered
      # twice, but it is not lost.
      #
      # The `low` of a WELCOME shows that a broker has forgotten numbers, unless the lowest number is unanswered. In that case the broker
      # refuses a later number with SEQUENCE, and the window uses all lower numbers again that are not unanswered.
      #
      # Every method is called with the connection's lock.
      class SendWindow
        # Numbers that the broker remembers above the lowest unsettled one.
        MAP = 4096
        SHORT = 0xFFFF
        private_constant :MAP, :SHORT

        attr_reader :window_messages

        def initialize(numbered:, reused:)
          @numbered = numbered
          @identity_reused = reused
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

        def quiet? = each_unanswered.none? { |request| request.transmitted && !request.held && !request.queued }

        def fits?(count, bytes)
          return false if @window_messages.zero?
          return true if @messages.zero? && reach?(count)
          @messages + count <= @window_messages && @bytes + bytes <= @window_bytes && reach?(count)
        end

        # The messages of a SEND_BATCH need consecutive numbers that no client has used.
        def batches? = !@numbered || (@free.empty? && @next > @doubtful)

        def add(request)
          @messages += request.count
          @bytes += request.bytes
          request.order = (@orders += 1)
          number(request)
        end

        # @return [Boolean] false: it was sent already
        def withdraw(request)
          return false if request.transmitted
          release(request.number, request.count) if take(request.number)
          true
        end

        def acknowledge(ack)
          return acknowledge_one(ack, ack.id, ack.value) if ack.last == ack.id
          raise NotUnderstood, "the broker acknowledges messages #{ack.id} to #{ack.last}, which were not sent" unless (ack.last - ack.id).between?(1, SHORT)
          (ack.id..ack.last).each_with_index.flat_map { |number, index| acknowledge_one(ack, number, ack.value + index) }
        end

        def refuse(id, error)
          request = @rising[id] || @reused[id] or return []
          if error.is_a?(Draining)
            request.held = true
            return []
          end
          take(id)
          release(id, request.count)
          return [add_again(request)] if error.is_a?(OutOfSequence) && request.count == 1 && below?(id)
          request.fail(error)
          []
        end

        # @return [Array<SendRequest>] what the new connection has to send again, in order
        def connected(welcome)
          @window_messages = [welcome.window_messages, 1].max
          @window_bytes = welcome.window_bytes
          again = each_unanswered.sort_by { |request| [request.order, request.offset] }
          return unnumbered(again) unless @numbered
          begin_at(welcome.low)
          too_big, again = again.partition { |request| request.whole.bytes > welcome.max_frame }
          too_big.each { |request| drop(request, Refused.of(Wire::Code::TOO_BIG)) }
          again.flat_map { |request| within_reach(request, welcome.low + MAP) }
        end

        # Fails each request with the error that the block returns for it.
        def fail_all
          each_unanswered.each { |request| drop(request, yield(request)) }
        end

        private

        def each_unanswered = @rising.values + @reused.values

        def reach?(count) = !@numbered || (count == 1 && !@free.empty?) || @next + count - 1 < lowest + MAP

        # A Hash finds its first key at once, and reused numbers are few.
        def lowest = [@rising.first&.first, @reused.keys.min, @free.first].compact.min || @next

        def number(request)
          if @numbered && request.count == 1 && !@free.empty?
            number = @free.shift
            @reused[number] = request
          else
            number = @next
            @next += request.count
            @rising[number] = request
          end
          request.doubtful = number <= @doubtful
          request.number = number
          request
        end

        def take(number)
          request = @rising.delete(number) || @reused.delete(number) or return
          @messages -= request.count
          @bytes -= request.bytes
          request
        end

        def drop(request, error)
          take(request.number)
          release(request.number, request.count)
          request.fail(error)
        end

        # A number that was refused may be used again.
        def release(number, count)
          return unless @numbered
          if number + count >= @next
            # The broker has forgotten the numbers above the next one.
            @next = [number, @next].min
            @next = [@next, @free.pop].min while @free.last && @free.last >= @next - 1
          else
            @free = (@free + (number...number + count).to_a).sort
          end
        end

        def acknowledge_one(ack, number, id)
          request = take(number) or return []
          if ack.duplicate? && request.doubtful
            request.transmitted = false
            return [add(request)]
          end
          return acknowledge_batch(request, ack) unless ack.request == Wire::Type::SEND
          request.resolve([Receipt.new((id unless ack.duplicate?), ack.level, duplicate: ack.duplicate?)])
          []
        end

        def acknowledge_batch(request, ack)
          # The highest number first, so that the refused end of a batch can be sent again as one frame.
          ack.refusals.reverse_each { |refusal| release(ack.id + refusal.index, 1) if refusal.index < request.count }
          results = results(request, ack)
          again = ack.refusals.filter_map do |refusal|
            next unless refusal.index < request.count && later?(refusal, ack.id + refusal.index)
            results[refusal.index] = nil
            add_again(request.part(refusal.index, 1))
          end
          again.empty? ? request.resolve(results) : request.collect(0, results)
          again
        end

        # The message can be accepted later: under a lower number, or by the broker that replaces a draining one.
        def later?(refusal, number)
          case refusal.code
          when Wire::Code::DRAINING then true
          when Wire::Code::SEQUENCE then below?(number)
          end
        end

        # @return [Array<Receipt, Refused>] one for each message of a batch
        def results(request, ack)
          refused = ack.refusals.to_h { |refusal| [refusal.index, refusal] }
          id = ack.value unless ack.duplicate?
          Array.new(request.count) do |index|
            if (refusal = refused[index])
              Refused.of(refusal.code, retry_after: (refusal.retry_after / 1000.0 if refusal.retry_after.positive?))
            else
              Receipt.new(id, ack.level, duplicate: ack.duplicate?).tap { id += 1 if id }
            end
          end
        end

        # Messages that the broker may have accepted keep their numbers. It has not accepted those above its map: they take other numbers,
        # each in a frame of its own, because these numbers may be doubtful.
        def within_reach(request, last)
          number = request.number
          return [request] if number + request.count - 1 <= last
          take(number)
          return [add_again(request)] if request.count == 1
          kept = [last - number + 1, 0].max
          parts = (kept...request.count).map { |index| request.part(index, 1) }
          parts.unshift(keep(request.part(0, kept), number)) if kept.positive?
          parts.each { |part| add_again(part) unless part.number }
        end

        def keep(part, number)
          @messages += part.count
          @bytes += part.bytes
          part.doubtful = false
          part.number = number
          @reused[number] = part
        end

        # It keeps its place in the order.
        def add_again(request)
          order = request.order
          request.transmitted = false
          add(request).tap { request.order = order }
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

        def unanswered_numbers = each_unanswered.flat_map { |request| (request.number...request.number + request.count).to_a }

        # Without numbers the broker cannot recognise a message that it has accepted.
        def unnumbered(again)
          sent, waiting = again.partition { |request| request.transmitted && !request.held }
          sent.each { |request| drop(request, OutcomeUnknown.new("the connection broke before the answer came: the message may have been taken or not")) }
          waiting
        end

        # A restarted broker has forgotten the numbers of level memory. They must be used again, because its map does not advance
        # beyond a gap.
        def begin_at(low)
          @low = low
          @looked_below = false
          count_from(low)
          @used = @next - 1
        end

        def count_from(low)
          if @orders.zero? && @next == 1
            @next = low + 1
            @doubtful = low + MAP if @identity_reused
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
