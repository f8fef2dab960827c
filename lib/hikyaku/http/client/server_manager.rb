# frozen_string_literal: true

require_relative "connection"
require_relative "link"
require_relative "verdict"

module Hikyaku
  module HTTP
    class Client
      # The connections to one origin, what waits to be asked there, and which connection asks what: the paper's server connection manager.
      #
      # While it is not known whether the origin can be pipelined, each connection has one request under way, and there are several. The first answer
      # that speaks for it is followed by a probe: two requests in one write. When both are answered, as much is under way as the link takes
      # ({Link#window}), on as few connections as fill it. Whatever goes wrong costs the verdict, and what was unanswered is asked again, one by one.
      class ServerManager
        # More are not asked on one connection at a time, however fast it is: the server has to keep them.
        MOST_UNANSWERED = 128
        PROBE = 2 # requests
        # An answer is late when nothing came for so many round trips, and so many seconds.
        LATE_TRIPS = 3
        LATE = 1.5
        # An answer that takes the line for longer holds up the others: they go elsewhere.
        LARGE_BYTES = 256_000
        LARGE_SECONDS = 2.0
        # What was idle for longer is looked at before it is used, seconds.
        FRESH = 0.02
        # What cannot be repeated is not entrusted to a connection that was idle for longer: the server may be closing it.
        TRUSTED = 2.0
        # A server that needs so long for an answer is asked on several connections: it works on one request of each.
        SLOW_SERVER = 0.01 # seconds
        # For so long after one more connection was refused, those that stand have to do, seconds.
        ENOUGH = 5.0
        # Servers close what was idle for longer, and mean nothing by it, seconds.
        STALE = 1.0
        private_constant :MOST_UNANSWERED, :PROBE, :LATE_TRIPS, :LATE, :LARGE_BYTES, :LARGE_SECONDS, :FRESH, :TRUSTED, :SLOW_SERVER, :ENOUGH, :STALE

        # @return [Route]
        attr_reader :route
        # @return [Verdict]
        attr_reader :verdict
        # @return [Link]
        attr_reader :link
        # @return [Array<Connection>]
        attr_reader :connections

        # @param route [Route]
        # @param settings [Settings]
        # @param memory [Memory] what was known of origins
        # @param wake [#call]
        # @param clock [#call] seconds of the wall clock
        def initialize(route, settings, memory:, wake:, clock:)
          @route = route
          @settings = settings
          @memory = memory
          @wake = wake
          @clock = clock
          record = memory.read(route.key)
          @verdict = Verdict.new(record["verdict"], now: clock.call)
          @link = Link.new(record["link"])
          @waiting = []
          @connections = []
          @broken_off = false
          @enough_until = -Float::INFINITY
          @service = 0.0
        end

        # @param exchange [Exchange]
        # @return [void]
        def enqueue(exchange)
          place = @waiting.bsearch_index { |other| order(other, exchange) > 0 } || @waiting.size
          @waiting.insert(place, exchange)
        end

        # @return [Boolean] whether nothing waits and nothing is under way
        def idle? = @waiting.empty? && @connections.all? { |connection| connection.idle? || connection.closed? }

        # @return [Integer] requests that wait or are under way
        def size = @waiting.size + @connections.sum { |connection| connection.unanswered.size }

        # Goes on: with what came, with what is late, with what waits.
        #
        # @param now [Float] seconds of the monotonic clock
        # @param ready [Hash{IO => Object}] what can be read or written
        def step(now, ready)
          @connections.dup.each { |connection| connection.step(now) if connection.opening? || connection.ready?(ready) }
          tend(now)
        end

        # Looks after what takes too long, and asks what can be asked.
        #
        # @return [void]
        def tend(now)
          @connections.dup.each { |connection| look_after(connection, now) }
          @waiting.reject!(&:canceled?)
          ask(now)
          @connections.dup.each { |connection| connection.flush(now) }
          remember if idle?
        end

        # @return [Float, nil] when to call {#tend} at the latest
        def deadline
          times = @connections.filter_map { |connection| [connection.deadline, late_at(connection)].compact.min }
          times.min
        end

        # @return [String] a sentence
        def explain
          way = @link.round_trip ? "; a round trip takes #{(@link.round_trip * 1e3).round(1)} ms#{", #{(@link.rate / 1e3).round(1)} kB come in a second" if @link.rate}" : ""
          limit = @verdict.most_per_connection ? "; it answers #{@verdict.most_per_connection} on a connection" : ""
          "#{@route} #{@verdict.explanation(@clock.call)}#{way}#{limit}"
        end

        # @return [void]
        def close
          remember
          @connections.each(&:close)
          @connections.clear
        end

        # @return [Array<Exchange>] all that is not answered, which is forgotten here
        def give_up
          all = @waiting + @connections.flat_map { |connection| connection.pipeline.give_up }
          @waiting = []
          all
        end

        # What a connection tells.

        # @api private
        def opened(round_trip)
          @link.connected(round_trip) if round_trip
        end

        # @api private
        def received(bytes, now)
          busy? ? @link.received(bytes, now, limited: @waiting.empty?) : @link.idle
        end

        # @api private
        def head(connection, response)
          @verdict.met(response, @clock.call) if connection.pipeline.answered.zero? || response.minor.zero?
          return unless response.content_length && large?(response.content_length)
          connection.held = true
          move_tail(connection) if connection.unanswered.size > 1
        end

        # @api private
        def answered(connection, exchange, response, bytes)
          @link.answered(bytes) unless exchange.conditional? || bytes > LARGE_BYTES
          learn_service(connection, exchange)
          forgive(exchange, response)
          connection.resume
          connection.cautious = connection.held = false
          return unless connection.unanswered.empty?
          @link.idle unless busy?
          batch_answered(connection)
        end

        # @api private
        def broke(connection, cause, error)
          @connections.delete(connection)
          unanswered = connection.pipeline.give_up
          learn_from(connection, cause, unanswered)
          return refused(error, connection.moved_at) if cause == :refused
          @broken_off = true if unanswered.any?
          again(connection, cause, error, unanswered)
        end

        private

        def order(one, other) = ([one.request.priority, one.number] <=> [other.request.priority, other.number])

        def busy? = @connections.sum { |connection| connection.unanswered.size } > 1

        # What waits goes to where there is a place, or a connection is opened for it.
        def ask(now)
          return if @waiting.empty?
          weed(now)
          wall = @clock.call
          probe(now) if @settings.pipelining && @verdict.state(wall) == :eligible
          pipe = @settings.pipelining && @verdict.pipe?(wall)
          given = {}.compare_by_identity
          space = pipe ? @link.window - @connections.sum { |connection| connection.load(@link.answer_bytes) } : 0
          while (exchange = @waiting.first)
            connection = place_for(exchange, pipe, space, given, now) or break
            space -= exchange.expected_bytes(@link.answer_bytes)
            (given[connection] ||= []) << @waiting.shift
          end
          given.each { |one, exchanges| one.ask(exchanges, now, round_trip: @link.round_trip) }
          open_more(pipe, now)
        end

        # Idle connections that the server has closed meanwhile, and those on which nothing more is asked.
        def weed(now)
          @connections.reject! do |connection|
            next false unless connection.idle?
            gone = !connection.usable? || full?(connection, {}) || connection.rest(now) > @settings.keep_idle || (connection.rest(now) > FRESH && !connection.alive?)
            connection.close if gone
            gone
          end
        end

        # Two in one write, where one was answered already and nothing is under way.
        def probe(now)
          return if @connections.any?(&:probing)
          two = @waiting.lazy.select(&:pipelined?).first(PROBE)
          return if two.size < PROBE
          connection = @connections.find { |one| one.idle? && one.usable? && one.pipeline.answered.positive? } or return
          two.each { |exchange| @waiting.delete(exchange) }
          connection.probing = true
          connection.ask(two, now)
        end

        def place_for(exchange, pipe, space, given, now)
          usable = @connections.select { |connection| connection.usable? && !connection.probing && !full?(connection, given) }
          return free(usable, given).find { |connection| connection.asked.zero? } if exchange.solitary?
          return free(usable, given).find { |connection| exchange.request.idempotent? || trusted?(connection, now) } unless exchange.pipelined? && pipe
          candidates = usable.select { |connection| takes?(connection, given) }
          best = candidates.min_by { |connection| connection.unanswered.size + given.fetch(connection, []).size }
          return unless best
          best if space >= exchange.expected_bytes(@link.answer_bytes) || (best.unanswered.empty? && !given.key?(best))
        end

        def free(connections, given) = connections.select { |connection| connection.idle? && !given.key?(connection) }

        def trusted?(connection, now) = connection.asked.zero? || connection.rest(now) < TRUSTED

        # Nothing goes behind what wants a connection to itself.
        def takes?(connection, given)
          under_way = connection.unanswered.size + given.fetch(connection, []).size
          return under_way.zero? if connection.cautious
          under_way < share && connection.unanswered.all?(&:pipelined?) && given.fetch(connection, []).all?(&:pipelined?)
        end

        # While connections are being opened, those that stand leave them something.
        def share
          opening = @connections.count(&:opening?)
          return MOST_UNANSWERED if opening.zero?
          [(size / @connections.size.to_f).ceil, PROBE].max.clamp(1, MOST_UNANSWERED)
        end

        def full?(connection, given)
          limit = @verdict.most_per_connection or return false
          connection.asked + given.fetch(connection, []).size >= limit
        end

        # As many as there is use for. While two are out as a probe, what comes of it decides.
        def open_more(pipe, now)
          return if @waiting.empty? && @connections.any?
          return if @connections.any?(&:probing) && @waiting.all?(&:pipelined?)
          return if @connections.any? && now < @enough_until
          spare_one if @waiting.any?(&:solitary?)
          opening = @connections.count(&:opening?)
          wanted = pipe ? wanted_for_pipe : @waiting.size
          most = [@settings.max_connections - @connections.size, wanted - opening].min
          most.times do
            connection = Connection.new(@route, @settings, owner: self, wake: @wake, now: now)
            connection.cautious = @broken_off
            @connections << connection
            connection.step(now)
            break if connection.closed?
          end
          @broken_off = false if most.positive?
        end

        # What was used is of no use for what wants a connection of its own.
        def spare_one
          return if @connections.size < @settings.max_connections
          idle = @connections.find { |connection| connection.idle? && connection.asked.positive? } or return
          idle.close
          @connections.delete(idle)
        end

        # Those that take pipelines, and one for each that wants one to itself.
        def wanted_for_pipe
          alone = @waiting.count { |exchange| !exchange.pipelined? }
          pipes = @connections.count { |connection| connection.opening? || connection.usable? }
          shared = @waiting.size - alone
          useful = (shared.positive? || pipes.zero?) ? [worthwhile - pipes, 0].max : 0
          alone + useful
        end

        def worthwhile
          return @settings.max_connections if @service > [SLOW_SERVER, @link.round_trip.to_f].max
          [@link.connections, @settings.max_connections].min
        end

        # From the end of one answer to the beginning of the next, on a line that waits for the server.
        def learn_service(connection, exchange)
          return unless exchange.begun_at && exchange.sent_at && connection.pipeline.batch_size == 1
          alone = exchange.begun_at - exchange.sent_at - @link.round_trip.to_f
          @service += ([alone, 0].max - @service) * 0.2
        end

        def batch_answered(connection)
          wall = @clock.call
          if connection.probing
            connection.probing = false
            @verdict.probed(wall)
          elsif connection.pipeline.batch_size > 1
            @verdict.succeeded(wall)
          end
        end

        def large?(length) = length > LARGE_BYTES || (@link.rate && length > @link.rate * LARGE_SECONDS)

        # What is late, or has taken too long.
        def look_after(connection, now)
          return if connection.expire(now)
          late = late_at(connection)
          late!(connection) if late && now >= late
        end

        def late_at(connection)
          return if connection.closed? || connection.paused? || connection.pipeline.last?
          others_wait = connection.unanswered.size > 1
          return if !others_wait && (!connection.pipeline.midway? || connection.pipeline.begun?)
          connection.moved_at + [LATE_TRIPS * @link.round_trip.to_f, LATE].max
        end

        # Where one was answered and the next is not, it may never be: all that is unanswered is asked elsewhere; so are two that were to find
        # out. Else, where none was, the first may just take long, and is waited for; the others are not to.
        def late!(connection)
          @verdict.closed_after(connection.pipeline.answered) if connection.probing && !connection.pipeline.midway?
          in_doubt = (connection.pipeline.midway? || connection.probing) && !connection.pipeline.begun?
          return suspect(connection, :slow) { move_tail(connection) } unless in_doubt
          suspect(connection, connection.probing ? :discarded : :stalled) do |what|
            left = connection.pipeline.give_up
            @connections.delete(connection)
            connection.close
            left.first.suspected = what
            left.first.solitary!
            left.each { |exchange| enqueue(exchange) }
          end
        end

        def suspect(connection, what)
          @verdict.failed(what, @clock.call)
          yield what
          connection.probing = false
        end

        # By itself it takes as long, or is refused as well: then it was not the pipeline that was at fault.
        def forgive(exchange, response)
          return unless exchange.suspected
          same = (exchange.suspected == :balked) ? Pipeline::BALKS.include?(response.status) : exchange.begun_at - exchange.sent_at > LATE / 2
          return unless same
          @verdict.forgive(exchange.suspected, @clock.call)
          exchange.suspected = nil
        end

        def move_tail(connection)
          tail = connection.pipeline.give_up_tail
          connection.last!
          tail.each { |exchange| enqueue(exchange) }
        end

        def learn_from(connection, cause, unanswered)
          wall = @clock.call
          count = connection.pipeline.answered
          case cause
          when :corrupt then @verdict.ban!(:corrupt, wall)
          when :doubtful then @verdict.ban!(:doubtful, wall)
          when :balked
            @verdict.failed(:balked, wall)
            @verdict.closed_after(count) if connection.probing && !connection.pipeline.midway?
          when :last then @verdict.closed_after(count) if unanswered.any?
          when :closed, :reset
            return if unanswered.empty?
            @verdict.closed_after(count, told: false) if connection.rested < STALE
            @verdict.failed(connection.probing ? :discarded : cause, wall) if unanswered.size > 1
          end
        end

        # RFC 9112, section 9.3.1: what was not answered is asked again, unless it may have been heard, and asking twice is not as asking once.
        def again(connection, cause, error, unanswered)
          unanswered.reject!(&:canceled?) unless cause == :timeout
          return if unanswered.empty?
          first, *rest = unanswered
          unanswered.each(&:solitary!) if cause == :doubtful || cause == :corrupt
          rest.each { |exchange| enqueue(exchange) }
          return by_itself(first) if cause == :balked
          return enqueue(first) if %i[last unwanted].include?(cause) && first.request.idempotent?
          stale = connection.pipeline.answered.positive? && first.begun_at.nil? && cause != :timeout
          return first.listener.failed(broken(cause, error, first)) if cause == :timeout
          first.solitary! if connection.asked > 1
          first.again?(stale: stale) ? enqueue(first) : first.listener.failed(broken(cause, error, first))
        end

        def by_itself(exchange)
          exchange.solitary!
          exchange.suspected = :balked
          enqueue(exchange)
        end

        # Where some connections stand, one that does not come about is one too many; else nothing can be asked.
        def refused(error, began)
          @enough_until = began + ENOUGH
          return if @connections.any?(&:open?)
          @waiting.shift(@waiting.size).each { |exchange| exchange.listener.failed(error) } if @connections.empty?
        end

        def broken(cause, error, exchange)
          url = exchange.request.address.url
          case cause
          when :timeout then TimedOut.new(error.message, phase: error.phase, url: url)
          when :corrupt, :doubtful then BadResponse.new("the answer to #{url} cannot be used: #{error.message}", url: url)
          else ConnectionLost.new("#{@route} broke off the connection before the answer to #{url} was whole#{": #{error.message}" if error}", url: url)
          end
        end

        def remember
          record = {"verdict" => @verdict.record, "link" => @link.record}
          return if record == @remembered
          @remembered = record
          @memory.write(@route.key, record)
        end
      end
    end
  end
end
