# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # One round of finding places: which connection is to ask what.
      class Scheduler
        # More are not asked on one connection at a time, however fast it is: the server has to keep them.
        MOST_UNANSWERED = 128
        FEWEST = 2 # that an open connection may take while others are being opened, and take long
        SOON = 1.25 # round trips: one that has been opened for no longer is about to stand
        # What cannot be repeated is not entrusted to a connection that was idle for longer: the server may be closing it, seconds.
        TRUSTED = 2.0
        # A connection in this round: what is under way on it or given to it, how many these are, and whether one of them wants it to itself.
        Place = Struct.new(:connection, :given, :size, :alone) do
          # Requests since it was last idle.
          def batch = (given.size == size) ? size : connection.pipeline.batch_size + given.size
        end
        # Answers may be so much smaller than they usually are: what others bring beside the first connection is by these.
        SMALLER = 2
        private_constant :MOST_UNANSWERED, :FEWEST, :SOON, :TRUSTED, :Place, :SMALLER

        def initialize(pool, waiting, link:, verdict:, pipe:, budget:, now:)
          @pool = pool
          @waiting = waiting
          @mean = ((link.rate.nil? && link.guessed?) || pool.under_way.zero?) ? link.hoped_bytes : link.answer_bytes
          @usual = link.answer_bytes
          @budget = budget
          @spent = 0.0
          @limit = verdict.most_per_connection
          @pipe = pipe
          @now = now
          @round_trip = link.round_trip
          @space = pipe ? link.window - pool.connections.sum { |connection| connection.load(@mean) } : 0
          @places = pool.connections.filter_map { |connection| place(connection) if connection.usable? && !connection.probing }
          @share = share
          # A server sends more at once where it has sent more: these come first among those that have as little to do.
          @places.sort_by! { |place| -place.connection.brought } if @places.size > 1
          @first_place = @places.first
          @beside = SMALLER * link.relief / @usual
          reserve
        end

        def give?(exchange)
          place = place_for(exchange) or return false
          @space -= exchange.expected_bytes(@mean)
          @spent += exchange.expected_bytes(@usual)
          place.given << exchange
          place.size += 1
          place.alone ||= !exchange.pipelined?
          true
        end

        attr_reader :spent

        def each = @places.each { |place| yield place.connection, place.given unless place.given.empty? }

        private

        def place(connection)
          unanswered = connection.unanswered
          Place.new(connection, [], unanswered.size, !unanswered.all?(&:pipelined?))
        end

        # Where no more can be opened, others would take each connection before it is idle for what is the most urgent and wants one to itself.
        def reserve
          return if @pool.more?
          @first = @waiting.first
          return if @first.nil? || @first.pipelined?
          @reserved = @places.min_by { |place| place.alone ? 0 : place.size }
        end

        def place_for(exchange)
          return free(exchange) { |connection| connection.asked.zero? } if exchange.solitary?
          return free(exchange) { |connection| exchange.request.idempotent? || trusted?(connection) } unless exchange.pipelined? && @pipe
          best = shortest or return
          best if best.size.zero? || (@space >= exchange.expected_bytes(@mean) && @spent < @budget)
        end

        def free(exchange)
          @places.find do |place|
            place.size.zero? && !full?(place) && (exchange.equal?(@first) || !place.equal?(@reserved)) && yield(place.connection)
          end
        end

        def trusted?(connection) = connection.asked.zero? || connection.rest(@now) < TRUSTED

        def full?(place) = !@limit.nil? && place.connection.asked + place.given.size >= @limit

        def shortest
          best = nil
          @places.each { |place| best = place if (best.nil? || place.size < best.size) && takes?(place) }
          best
        end

        # Nothing goes behind what wants a connection to itself, nor where such a one is to go next.
        def takes?(place)
          return false if place.alone || place.equal?(@reserved) || full?(place) || (place.batch >= @beside && !place.equal?(@first_place))
          place.connection.cautious ? place.size.zero? : place.size < @share
        end

        # While connections are being opened, those that stand leave them something: at least what is over, where they are about to stand as well.
        def share
          opening = @pool.connections.select(&:opening?)
          return MOST_UNANSWERED if opening.empty?
          all = @waiting.size + @pool.under_way
          fewest = (opening.all? { |connection| soon?(connection) }) ? 1 : FEWEST
          (all / @pool.connections.size.to_f).ceil.clamp(fewest, MOST_UNANSWERED)
        end

        def soon?(connection) = @round_trip && connection.rest(@now) < SOON * @round_trip
      end

      # How fast answers are asked for on a long way over connections that have brought much.
      #
      # On a new connection a server sends little at first, and more with each round trip (RFC 5681, section 3.1). On one that has brought much it
      # sends all at once what was asked for at once, faster than the line takes it: the queue before the line overflows, and what is lost comes one round
      # trip later, or several. So no more is asked for in a time than the line carries in it, and somewhat more, so that it never
      # stands idle because of a rate that was taken too low.
      #
      # It is a bucket of answers' bytes, which fills at FACTOR times the line's rate and holds BURST.
      class TokenBucket
        FACTOR = 1.1
        # What a queue takes at least: so many seconds of the line's rate, or so many bytes.
        BURST = 0.05 # seconds
        LEAST_BURST = 65_536 # bytes
        # Less is not worth a write, seconds.
        STEP = 0.01
        private_constant :FACTOR, :BURST, :LEAST_BURST, :STEP

        attr_reader :again_at

        def initialize(link)
          @link = link
          @budget = @again_at = nil
          @seen_at = 0.0
        end

        def budget(now, brought)
          rate = @link.rate
          return @budget = Float::INFINITY if rate.nil? || @link.near? || brought < LEAST_BURST
          burst = [BURST * rate, LEAST_BURST].max
          @budget = [(@budget || burst) + FACTOR * rate * (now - @seen_at), burst].min
        ensure
          @seen_at = now
        end

        def spend(bytes, more:)
          @budget -= bytes
          @again_at = (@seen_at + STEP if more && @budget.finite?)
        end
      end
    end
  end
end
