# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # What is known of the way to one origin: how long a round trip takes, how fast bytes come, how large answers are. From these follows how
      # much may be under way.
      #
      # As much as fills the way there and back must be under way, or the line stands idle: the rate times the round trip (the bandwidth-delay
      # product). Somewhat more keeps it full when answers come in bursts. Much more only makes requests queue before the acknowledgements
      # of what comes, in a slow uplink, and makes later, more urgent requests wait.
      #
      # The rate is the highest that was seen in the last rounds, see {RateSampler}. While too little is under way to fill the line, answers that come singly
      # make it too low, so that what may be under way grows by HEADROOM with each round, until the line is full.
      class PathEstimator
        HEADROOM = 1.6
        # The same until the rate stops growing: somewhat more than servers grow what they send.
        HEADROOM_AT_FIRST = 2.5
        GROWTH = 1.25 # less is none
        STEADY = 2 # samples without growth
        FIRST_ANSWER = 1_500 # bytes
        # What a server sends at once on a connection that is new: RFC 6928.
        INITIAL_BURST = 14_600 # bytes
        # What it sends in the first two round trips, as it sends twice as much with each (RFC 5681, section 3.1).
        BURSTS = 3
        # What is asked first is taken for so much less than the mean, because nobody knows: too little under way leaves the line idle for a round
        # trip, too much costs the time of some request heads.
        HOPE = 4
        LEAST_ANSWER = 200 # bytes
        # What releases the next burst comes somewhat later than a round trip.
        FULL = 1.1
        MOST_CONNECTIONS = 6
        FEWEST = 2 # requests
        # So much may wait before the line in any case, in the seconds that it takes: nobody minds, and to ask little by little costs a server a packet each
        # time, of which it may keep the next back until this one is acknowledged.
        QUEUE = 0.05
        NEAR = 0.02 # seconds of a round trip
        NEAR_BURST = 1_000_000 # bytes
        SAMPLES = 12
        WEIGHT = 0.2 # of the newest answer in the mean
        # The steps in which connections are worth their cost when only the round trip is known, seconds.
        LONG_WAY = 0.1
        PACKET = 1_460 # bytes
        # The first answer begins so much later than a round trip allows where the line takes long for its first packet: of a round trip. And the request
        # takes so much longer than the packet that opened its connection, which is about a hundred bytes shorter, seconds.
        HEAVY = 0.25
        HEAVY_REQUEST = 0.01
        private_constant :HOPE, :LEAST_ANSWER, :HEADROOM, :HEADROOM_AT_FIRST, :GROWTH, :STEADY, :FIRST_ANSWER, :FULL, :FEWEST, :QUEUE, :NEAR, :NEAR_BURST, :HEAVY, :HEAVY_REQUEST, :SAMPLES, :WEIGHT, :LONG_WAY

        attr_reader :round_trip
        attr_reader :rate
        attr_reader :answer_bytes

        def initialize(record = nil)
          @answer_bytes = FIRST_ANSWER.to_f
          @guessed = true
          @flow = RateSampler.new
          @rates = []
          @steady = 0
          @heavy = false
          recall(record) if record
        end

        # A connection came about.
        def connected(seconds)
          seconds = [seconds, 1e-5].max
          @round_trip = seconds if @round_trip.nil? || seconds < @round_trip || @recalled
          @recalled = false
        end

        # Bytes came, while more was under way.
        def received(bytes, now, limited: false)
          rate = @flow.received(bytes, now, round_trip: @round_trip || 0.0, first: @rate.nil?) or return
          take(rate) unless limited && @rate && rate < @rate
        end

        # Nothing is under way any more: what comes next says nothing of the rate before its first bytes.
        def idle = @flow.idle

        # An answer is whole.
        def answered(bytes)
          @answer_bytes += (bytes - @answer_bytes) * (@guessed ? 1 : WEIGHT)
          @guessed = false
        end

        def guessed? = @guessed

        def hoped_bytes = LEAST_ANSWER.clamp(@answer_bytes / HOPE, @answer_bytes)

        def window
          return (near? ? NEAR_BURST : BURSTS * INITIAL_BURST * connections).to_f unless @rate && @round_trip
          headroom = (@steady < STEADY) ? HEADROOM_AT_FIRST : HEADROOM
          [headroom * @rate * @round_trip + @answer_bytes, QUEUE * @rate, FEWEST * @answer_bytes].max
        end

        def connections
          return 1 unless @round_trip
          return 1 if heavy?
          needed = @rate ? FULL * @rate * @round_trip / INITIAL_BURST : @round_trip / LONG_WAY
          needed.ceil.clamp(1, MOST_CONNECTIONS)
        end

        # An answer began that was asked for by itself. Where both took long, the line is slow: what a server sends at once on several connections would stand
        # before it for so long that the server takes it for lost, and sends it again.
        def begun(seconds, request_delay) = @heavy = seconds > (1 + HEAVY) * @round_trip.to_f && !request_delay.nil? && request_delay > HEAVY_REQUEST

        def heavy? = @rate.nil? && @heavy

        def seconds_of(bytes) = @rate ? bytes / @rate : 0.0

        def full = (@rate && @round_trip) ? @rate * @round_trip / @answer_bytes : 0.0

        # What the first connection cannot bring until a server sends as much on it as the line takes (twice as much with each round trip), and others
        # have to, each its part. More on them than that would only have them share the line for longer, and end at different times.
        def relief
          return Float::INFINITY unless @rate && @round_trip
          full, burst, missing = @rate * @round_trip, INITIAL_BURST, 0.0
          while burst < full
            missing += full - burst
            burst *= 2
          end
          [missing / [connections - 1, 1].max, INITIAL_BURST].max
        end

        def record = {"round_trip" => @round_trip&.round(6), "rate" => @rate&.round, "answer" => (@answer_bytes.round unless @guessed)}.compact

        def near? = !round_trip.nil? && round_trip < NEAR

        private

        def take(rate)
          @steady = (@rate && rate < @rate * GROWTH) ? @steady + 1 : 0
          @rates << rate
          @rates.shift if @rates.size > SAMPLES
          @rate = @rates.max
        end

        # Times of another day, or network, are a beginning: the first measured takes their place.
        def recall(record)
          trip, rate, answer = record.values_at("round_trip", "rate", "answer")
          @round_trip = Float(trip).clamp(1e-5, 60.0) if trip
          @rates << Float(rate).clamp(100.0, 1e11) if rate
          @rate = @rates.last
          @steady = STEADY if @rate
          @answer_bytes = Float(answer).clamp(64.0, 1e9) if answer
          @guessed = answer.nil?
          @recalled = true
        end
      end

      # How fast bytes come while they come: what the line carries, and not what a server dares to send on it.
      #
      # A connection that is new brings a burst, and then nothing for the rest of a round trip (RFC 5681, section 3.1). Over the whole round trip that is
      # a small part of what the line carries, far away a tiny one. So pauses do not count, nor what came at their end: it was under way meanwhile.
      class RateSampler
        # Shorter stretches say more about the machine than about the line, seconds.
        SHORTEST = 0.02
        # So much of a round trip without a byte is a pause; on a short way, so many seconds.
        PAUSE = 0.25
        SHORTEST_PAUSE = 0.02
        # The first figure is not waited for longer than so many bytes take: what a new connection brings at once.
        FIRST = 14_600
        private_constant :SHORTEST, :PAUSE, :SHORTEST_PAUSE, :FIRST

        def initialize = @bytes = @busy = 0

        # Bytes came.
        def received(bytes, now, round_trip:, first: false)
          count(bytes, now, [round_trip * PAUSE, SHORTEST_PAUSE].max)
          return if @busy < SHORTEST
          enough = first && @bytes >= FIRST
          return unless enough || now - @began >= round_trip
          rate = @bytes / @busy
          @began = now
          @bytes = @busy = 0
          rate
        end

        # Nothing is under way any more: what comes next does so after a pause, however short.
        def idle = @last = nil

        private

        def count(bytes, now, pause)
          if @last.nil? || now - @last > pause
            @resumed = now
          elsif now > @resumed
            @bytes += bytes
            @busy += now - @last
          end
          @began ||= now
          @last = now
        end
      end

      # How long a server works on an answer. One that takes long is asked on several connections: it works on one request of each.
      class ServiceTime
        SLOW = 0.01 # seconds
        WEIGHT = 0.2 # of the newest in the mean
        private_constant :SLOW, :WEIGHT

        def initialize = @seconds = nil

        # An answer came to what was asked while nothing else was under way.
        def answered(exchange, round_trip)
          return unless exchange.begun_at && exchange.sent_at
          worked = [exchange.begun_at - exchange.sent_at - round_trip.to_f, 0].max
          @seconds = @seconds ? @seconds + (worked - @seconds) * WEIGHT : worked
        end

        def slow?(round_trip) = !@seconds.nil? && @seconds > [SLOW, round_trip.to_f].max
      end

      # How much is asked of an origin at once, as a rule: a page with all that belongs to it, or one thing now and then. Connections are opened before it
      # is known what will be asked, where that has been much, and not where it was little.
      class ConcurrencyHistory
        MOST = 1_000
        private_constant :MOST

        def initialize(record = nil)
          @usual = record.is_a?(Integer) ? record.clamp(0, MOST) : 0
          @most = 0
        end

        def seen(count)
          @most = count if count > @most
        end

        # All is answered. What was usual fades when less is asked.
        def over
          return if @most.zero?
          @usual = @most.clamp(@usual / 2, MOST)
          @most = 0
        end

        def connections = [@usual, @most].max

        def record = @usual
      end
    end
  end
end
