# frozen_string_literal: true

require_relative "connection"

module Hikyaku
  module HTTP
    class Client
      # The connections to one origin: as many as there is use for, and none that the server has closed.
      class ConnectionPool
        # What was idle for longer is looked at before it is used, seconds.
        FRESH = 0.02
        # For so long after one more connection was refused, those that stand have to do, seconds.
        ENOUGH = 5.0
        # A server that closes a connection after so many answers, and does not say so, does it within these seconds and round trips.
        SETTLED = 1.0
        TRIPS = 3
        # So many round trips take a new connection, its first request, and what stands before both.
        OPENED = 3
        private_constant :FRESH, :ENOUGH, :SETTLED, :TRIPS, :OPENED

        attr_reader :connections

        def initialize(route, settings, owner:, wake:, link:, demand:, service:, verdict:, line:)
          @route = route
          @settings = settings
          @owner = owner
          @wake = wake
          @link = link
          @demand = demand
          @service = service
          @verdict = verdict
          @line = line
          @connections = []
          @enough_until = nil
          @cautious = false
        end

        # The next that is opened asks one thing at first: the one before it broke off.
        def cautious! = @cautious = true

        # One more connection was refused.
        def refused(began) = @enough_until = began + ENOUGH

        attr_reader :enough_until

        def more? = @connections.any?(&:opening?) || (@connections.size < @settings.max_connections && @enough_until.nil?)

        def under_way = @connections.sum { |connection| connection.unanswered.size }

        def brought = @connections.sum(&:brought)

        def idle
          limit = @verdict.most_per_connection
          best = nil
          @connections.each do |connection|
            next unless connection.idle? && connection.usable? && !connection.probing
            next if limit && connection.asked >= limit
            best = connection if best.nil? || connection.brought > best.brought
          end
          best
        end

        def delete(connection) = @connections.delete(connection)

        # Idle connections that the server has closed meanwhile, and those on which nothing more is asked.
        def weed(now)
          @enough_until = nil if @enough_until && now >= @enough_until
          @connections.reject! do |connection|
            next false unless connection.idle?
            gone = !connection.usable? || full?(connection, now) || connection.rest(now) > @settings.keep_idle || (connection.rest(now) > FRESH && !connection.alive?)
            connection.close if gone
            gone
          end
        end

        # Connections that were idle for longer than they are kept.
        def clear(now)
          @connections.reject! do |connection|
            expired = connection.idle? && connection.rest(now) > @settings.keep_idle
            connection.close if expired
            expired
          end
        end

        # Those on which nothing is under way.
        def rest
          @connections.reject! { |connection| connection.idle?.tap { |idle| connection.close if idle } }
        end

        # As many as there is use for. While a few are out as a probe, those that pipelines would want: a long way takes as long as its answers.
        def open_more(waiting, pipe, now)
          return false if waiting.empty? && @connections.any?
          return false if @connections.any? && @enough_until
          spare_one if waiting.count(:unsafe, :solitary).positive?
          opening = @connections.count(&:opening?)
          wanted = (pipe || @connections.any?(&:probing)) ? wanted_for_pipe(waiting) : waiting.size
          most = [@settings.max_connections - @connections.size, wanted - opening].min
          most.positive? && add(most, now)
        end

        def close
          @connections.each(&:close)
          @connections.clear
        end

        private

        def add(count, now)
          cautious, @cautious = @cautious, false
          stands = false
          count.times do
            connection = Connection.new(@route, @settings, owner: @owner, wake: @wake, now: now, line: @line)
            connection.cautious = cautious
            @connections << connection
            connection.step(now)
            break if connection.closed?
            stands ||= connection.open?
          end
          stands
        end

        # One that has answered as many as it is thought to, and stands for long after, would have answered more.
        def full?(connection, now)
          limit = @verdict.most_per_connection or return false
          return false if connection.asked < limit
          return true if connection.rest(now) < [SETTLED, TRIPS * @link.round_trip.to_f].max || !connection.alive?
          @verdict.limit.outlasted(connection.asked)
          !@verdict.most_per_connection.nil?
        end

        # What was used is of no use for what wants a connection of its own, nor is what was idle for long for what cannot be repeated.
        def spare_one
          return if @connections.size < @settings.max_connections
          idle = @connections.find { |connection| connection.idle? && connection.asked.positive? } or return
          idle.close
          @connections.delete(idle)
        end

        # Those that take pipelines, and one for each that wants one to itself.
        def wanted_for_pipe(waiting)
          alone = waiting.count(:alone, :unsafe, :solitary)
          pipes = @connections.count { |connection| connection.opening? || (connection.usable? && connection.unanswered.all?(&:pipelined?)) }
          useful = ((waiting.count(:pipelined).positive? && !carried?(waiting)) || pipes.zero?) ? [worthwhile - pipes, 0].max : 0
          alone + useful
        end

        # Whether those that stand bring all that is asked for before another could bring anything: the line carries as much, and servers send as much, twice
        # as much with each round trip (RFC 5681, section 3.1).
        def carried?(waiting)
          return false unless @link.rate && @link.round_trip && !@service.slow?(@link.round_trip)
          bursts = @connections.sum { |connection| connection.open? ? PathEstimator::INITIAL_BURST + connection.brought : 0 }
          (under_way + waiting.count(:pipelined)) * @link.answer_bytes < [OPENED * @link.round_trip * @link.rate, PathEstimator::BURSTS * bursts].min
        end

        def worthwhile
          useful = @service.slow?(@link.round_trip) ? @settings.max_connections : @link.connections
          [useful, @demand.connections, @settings.max_connections].min
        end
      end
    end
  end
end
