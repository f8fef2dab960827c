# frozen_string_literal: true

require_relative "connection_pool"
require_relative "path_estimator"
require_relative "pipelining_policy"
require_relative "request_queue"
require_relative "retry_policy"
require_relative "scheduler"
require_relative "stall_detector"

module Hikyaku
  module HTTP
    class Client
      # The connections to one origin, what waits to be asked there, and which connection asks what: the paper's server connection manager.
      #
      # While it is not known whether the origin can be pipelined, each connection has one request under way, and there are several. The first answer
      # that speaks for it is followed by a probe: a few requests together. When two are answered, as much is under way as the link takes
      # ({PathEstimator#window}), on as few connections as fill it. Whatever goes wrong costs the verdict, and what was unanswered is asked again, one by one.
      class OriginPool
        LEAST_PROBE = 2 # requests
        FEW = 2 # requests that keep a server busy in any case
        # Seconds of silence, after which a connection goes on which nobody wants what is unanswered; and where others may need its place.
        SILENT = 5.0
        SILENT_WHILE_OTHERS_WAIT = 1.0
        # What is known is not written down more often, seconds.
        BETWEEN_NOTES = 0.1
        private_constant :LEAST_PROBE, :FEW, :BETWEEN_NOTES, :SILENT, :SILENT_WHILE_OTHERS_WAIT

        attr_reader :route
        attr_reader :verdict
        attr_reader :link
        attr_reader :used_at

        def initialize(route, settings, memory:, wake:, clock:, line: AccessLink.new)
          @route = route
          @settings = settings
          @memory = memory
          @clock = clock
          @line = line
          @due = 0.0
          record = memory.read(route.key)
          @verdict = PipeliningPolicy.new(record["verdict"], now: clock.call)
          @link = PathEstimator.new(record["link"])
          @pace = TokenBucket.new(@link)
          @demand = ConcurrencyHistory.new(record["demand"])
          @service = ServiceTime.new
          @waiting = RequestQueue.new
          @postponed = DeferredRequests.new
          @pool = ConnectionPool.new(route, settings, owner: self, wake: wake, link: @link, demand: @demand, service: @service, verdict: @verdict, line: line)
          @connections = @pool.connections
          @repetition = RetryPolicy.new(route) { |exchange| enqueue(exchange) }
          @used_at = @remembered_at = -Float::INFINITY
        end

        attr_reader :connections

        def enqueue(exchange) = @waiting.add(exchange)

        def postpone(exchange, at) = @postponed.add(exchange, at)

        def idle? = @waiting.empty? && @postponed.empty? && connections.all? { |connection| connection.idle? || connection.closed? }

        def under_way? = connections.any? { |connection| connection.opening? || connection.unanswered.any? }

        # Goes on with what came.
        def step(now, ready)
          connections.dup.each { |connection| connection.step(now) if connection.opening? || connection.ready?(ready) } unless connections.empty?
        end

        # Looks after what takes too long, and asks what can be asked. What has come is to be taken before, by {#step}.
        def tend(now)
          listen(now) if connections.any? || @due.positive?
          connections.dup.each { |connection| look_after(connection, now) }
          @postponed.due(now) { |exchange| enqueue(exchange) } unless @postponed.empty?
          ask(now) unless @waiting.empty?
          connections.each { |connection| connection.finish_unless(enough) }
          connections.dup.each { |connection| connection.flush(now) } if connections.any?(&:writes?)
          return @used_at = now unless idle?
          @demand.over
          remember(now) if now - @remembered_at > BETWEEN_NOTES
        end

        # Closes what was idle for too long, though nothing is asked here any more.
        def clear(now) = @pool.clear(now)

        # Closes what is idle.
        def rest = @pool.rest

        def deadline
          soonest = [@pool.enough_until, @pace.again_at].compact.min unless @waiting.empty?
          soonest = [soonest, @postponed.next_at].compact.min unless @postponed.empty?
          connections.each do |connection|
            limit, late = connection.deadline, late_at(connection)
            soonest = limit if limit && (soonest.nil? || limit < soonest)
            soonest = late if late && (soonest.nil? || late < soonest)
          end
          soonest
        end

        def explain
          way = @link.round_trip ? "; a round trip takes #{(@link.round_trip * 1e3).round(1)} ms#{", #{(@link.rate / 1e3).round(1)} kB come in a second" if @link.rate}" : ""
          limit = @verdict.most_per_connection ? "; it answers #{@verdict.most_per_connection} on a connection" : ""
          "#{@route} #{@verdict.explanation(@clock.call)}#{way}#{limit}"
        end

        def close
          @demand.over
          remember
          @pool.close
        end

        def give_up = @waiting.clear + @postponed.clear + connections.flat_map { |connection| connection.pipeline.give_up }

        def abandon(exchanges, now)
          abandonment = CancellationPolicy.new(connections, exchanges, @link)
          waiting = exchanges - connections.flat_map(&:unanswered)
          waiting + (abandonment.dear | abandonment.silent(now, @waiting.empty? ? SILENT : SILENT_WHILE_OTHERS_WAIT)).flat_map do |connection|
            left = abandonment.leave(connection)
            @pool.delete(connection) if connection.closed?
            @link.idle unless busy?
            gone, wanted = left.partition { |exchange| abandonment.unwanted?(exchange) }
            wanted.each { |exchange| enqueue(exchange) }
            gone
          end
        end

        # What a connection tells.

        def opened(round_trip)
          @link.connected(round_trip) if round_trip
        end

        def received(bytes, now)
          busy? ? @link.received(bytes, now, limited: @waiting.empty?) : @link.idle
        end

        def head(connection, response)
          probed(connection) if connection.probing && connection.pipeline.midway?
          @verdict.met(response, @clock.call) if connection.pipeline.answered.zero? || response.minor.zero?
          hold(connection) if response.content_length && StallDetector.large?(response.content_length, @link.rate)
        end

        # What is coming is long.
        def hold(connection)
          connection.held = true
          return unless connection.unanswered.size > 1
          move_tail(connection)
          connection.probing = false # whether the second would have been answered, nobody saw
        end

        def answered(connection, exchange, response, bytes)
          @link.answered(bytes) unless exchange.conditional? || bytes > StallDetector::LARGE_BYTES || alone?(connection)
          alone_answered(connection, exchange, bytes) if connection.pipeline.batch_size == 1 && @pool.under_way.zero?
          @verdict.limit.kept_open(connection.pipeline.answered) if response.keep_alive?
          FailureClassifier.forgive(@verdict, exchange, response, @clock.call)
          connection.resume
          connection.cautious = connection.held = false
          return unless connection.unanswered.empty?
          @link.idle unless busy?
          batch_answered(connection)
        end

        def broke(connection, cause, error)
          @pool.delete(connection)
          unanswered = connection.pipeline.give_up
          FailureClassifier.draw(@verdict, connection, cause, unanswered, @clock.call)
          return refused(error, connection.moved_at) if cause == :refused
          @pool.cautious! if unanswered.any?
          @repetition.after(connection, cause, error, unanswered)
        end

        private

        def busy? = @pool.under_way > 1

        # What is asked alone, as pages are, says nothing of the size of what is asked by the dozen.
        def alone?(connection) = connection.pipeline.batch_size == 1 && @pool.under_way.zero? && @waiting.empty?

        # It was the line that took long, or the server.
        def alone_answered(connection, exchange, bytes)
          @link.begun(exchange.begun_at - exchange.sent_at, connection.request_delay)
          @service.answered(exchange, @link.round_trip.to_f + @link.seconds_of([bytes, PathEstimator::PACKET].min)) unless @link.heavy?
        end

        # What waits goes to where there is a place, or a connection is opened for it.
        def ask(now)
          @waiting.drop_canceled
          @demand.seen(@waiting.size + @pool.under_way)
          @pool.weed(now)
          return if ask_at_once(now)
          wall = @clock.call
          probe(now) if @settings.pipelining && @verdict.state(wall) == :eligible
          pipe = @settings.pipelining && @verdict.pipe?(wall)
          budget = @pace.budget(now, @pool.brought)
          placement = Scheduler.new(@pool, @waiting, link: @link, verdict: @verdict, pipe: pipe, budget: budget, now: now)
          @waiting.hand_out { |exchange| placement.give?(exchange) }
          @pace.spend(placement.spent, more: more?)
          placement.each { |connection, exchanges| connection.ask(exchanges, now, round_trip: @link.round_trip, enough: enough) }
          ask(now) if @pool.open_more(@waiting, pipe, now) && !@waiting.empty?
        end

        def more? = @waiting.count(:pipelined).positive?

        def enough
          return unless more?
          return FEW if @pace.again_at # they come very soon
          [(@link.full / connections.size).ceil + 1, FEW].max
        end

        # What is alone, where a connection stands idle: most requests of most programs.
        def ask_at_once(now)
          return false unless @waiting.size == 1 && @waiting.count(:pipelined) == 1
          connection = @pool.idle or return false
          connection.ask(@waiting.take_pipelined(1), now, round_trip: @link.round_trip)
          true
        end

        # Several at once, where one was answered already and nothing is under way: what a server sends at once on such a connection. With fewer the line
        # stood idle until it is known what becomes of the second, and with more no sooner full.
        def probe(now)
          return if connections.any?(&:probing)
          connection = connections.find { |one| one.idle? && one.usable? && one.pipeline.answered.positive? } or return
          several = @waiting.take_pipelined(LEAST_PROBE, (PathEstimator::INITIAL_BURST / @link.answer_bytes).to_i) or return
          connection.probing = true
          connection.ask(several, now, round_trip: @link.round_trip, enough: enough)
        end

        def batch_answered(connection)
          return probed(connection) if connection.probing
          @verdict.succeeded(@clock.call) if connection.pipeline.batch_size > 1
        end

        # Both were heard: the second answer has begun.
        def probed(connection)
          connection.probing = false
          @verdict.probed(@clock.call)
        end

        # Where some connections stand, one that does not come about is one too many; else nothing can be asked.
        def refused(error, began)
          @pool.refused(began)
          @waiting.clear.each { |exchange| exchange.listener.failed(error) } if connections.empty?
        end

        def remember(now = @remembered_at)
          @remembered_at = now
          record = {"verdict" => @verdict.record, "link" => @link.record, "demand" => @demand.record}
          return if record == @remembered
          @remembered = record
          @memory.write(@route.key, record)
        end

        # ---- what is late, and what waits behind it

        # What is to come on all connections, and on which nothing comes.
        def listen(now)
          mean = (@link.answer_bytes unless @link.guessed?)
          due = connections.map { |connection| connection.due(mean) }
          all = due.sum
          @line.expect(all - @due)
          @due = all
          connections.zip(due) { |connection, bytes| connection.listen(bytes, now) }
        end

        # What is late, or has taken too long.
        def look_after(connection, now)
          return late!(connection) if in_doubt?(connection) && connection.expired?(now)
          return if connection.expire(now)
          hold(connection) if !connection.held && StallDetector.endless?(connection, @link.rate, now)
          late = late_at(connection)
          return if late.nil? || now < late
          return move_tail(connection) if connection.paused?
          late!(connection) unless connection.excused?(StallDetector.seconds(@link.round_trip), now)
        end

        def late_at(connection) = StallDetector.at(connection, @link.round_trip)

        # Where one was answered and the next is not, it may never be: all that is unanswered is asked elsewhere; so are two that were to find
        # out. Else, where none was, the first may just take long, and is waited for; the others are not to.
        def late!(connection)
          in_doubt = in_doubt?(connection)
          what = (connection.probing ? :discarded : :stalled) if in_doubt
          FailureClassifier.draw_from_silence(@verdict, connection, what || :slow, @clock.call)
          in_doubt ? ask_elsewhere(connection, what) : move_tail(connection)
          connection.probing = false
        end

        def in_doubt?(connection) = (connection.pipeline.midway? || connection.probing) && !connection.pipeline.begun?

        def ask_elsewhere(connection, what)
          left = connection.pipeline.give_up
          @pool.delete(connection)
          connection.close
          left.first.suspected = what
          left.first.solitary!
          left.first.tried!
          left.each { |exchange| enqueue(exchange) }
        end

        def move_tail(connection)
          connection.give_up_tail.each { |exchange| enqueue(exchange) }
        end
      end

      # What becomes of answers that nobody wants any more, and that a server is about to give: it cannot be told, but by closing the connection.
      #
      # What is asked next waits until they have come: their bytes over the rate of the line, on whichever connection they come, as these share the line. On
      # a connection that has to be opened for it, it waits for two round trips: one for the connection, one for the answer. What is on its way in the
      # meantime comes in any case. So where the bytes take longer, connections are closed, those with the most first, until they do not.
      class CancellationPolicy
        ROUND_TRIPS = 2
        # A server has work with each new connection. Nobody notices less than this, seconds.
        UNNOTICED = 0.1
        private_constant :ROUND_TRIPS, :UNNOTICED

        def initialize(connections, exchanges, link)
          @connections = connections
          @unwanted = exchanges.to_h { |exchange| [exchange, true] }.compare_by_identity
          @link = link
        end

        def unwanted?(exchange) = @unwanted.key?(exchange) || exchange.canceled?

        def dear
          return [] unless @link.rate && @link.round_trip
          bytes = @connections.to_h { |connection| [connection, bytes_on(connection)] }
          left = bytes.values.sum
          bytes.sort_by { |_, count| -count }.take_while { |_, count| (count.positive? && left / @link.rate > cost).tap { left -= count } }.map(&:first)
        end

        # Those that may never answer, and of whom nobody wants it.
        def silent(now, seconds)
          @connections.select do |connection|
            unanswered = connection.unanswered
            unanswered.any? && unanswered.all? { |exchange| unwanted?(exchange) } && !connection.pipeline.begun? && connection.rest(now) >= seconds
          end
        end

        # Nothing more is asked there. An answer that is wanted, and has begun, still comes; then it is closed.
        def leave(connection)
          return connection.give_up_tail if connection.pipeline.begun? && !unwanted?(connection.unanswered.first)
          connection.close
          connection.pipeline.give_up
        end

        private

        def cost = [ROUND_TRIPS * @link.round_trip, UNNOTICED].max

        def bytes_on(connection)
          return 0 if connection.paused?
          connection.pipeline.bytes_of(connection.unanswered.select { |exchange| unwanted?(exchange) }, @link.answer_bytes)
        end
      end
    end
  end
end
