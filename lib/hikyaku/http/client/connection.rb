# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "../errors"
require_relative "connector"
require_relative "path_estimator"
require_relative "pipeline"
require_relative "request_writer"
require_relative "stall_detector"

module Hikyaku
  module HTTP
    class Client
      # One connection to a server, and what is under way on it. It never waits: {OriginPool} says what to ask, the driver when to go on.
      #
      #     opening ──► open ──► last (nothing more is asked) ──► closed
      #
      # Its owner is told `opened(round_trip)`, `head(connection, response)`, `answered(connection, exchange, response, bytes)`, and at last, once,
      # `broke(connection, cause, error)`.
      class Connection
        include Support::Clock

        # More writes cost more than they gain on a shorter way.
        FAR = 0.02 # seconds of a round trip
        # Answers may be so much larger than they are in the mean.
        LARGER = 2
        CLOSED = [IOError, SystemCallError, OpenSSL::SSL::SSLError].freeze
        NONE = [].freeze
        private_constant :FAR, :LARGER, :CLOSED, :NONE

        attr_reader :pipeline
        attr_reader :moved_at
        attr_reader :asked
        attr_reader :brought
        attr_accessor :cautious
        attr_accessor :probing

        attr_accessor :held

        def initialize(route, settings, owner:, wake:, now:, line: AccessLink.new)
          @route = route
          @settings = settings
          @owner = owner
          @opening = Connector.new(route, settings, wake: wake)
          @pipeline = Pipeline.new(tags: settings.tags, **settings.limits)
          @patience = ConnectionTimeouts.new(route, settings.timeouts)
          @line = line
          @silence = IdleTimer.new(line)
          @outgoing = RequestWriter.new
          @asked = @brought = 0
          @rested = 0.0
          @moved_at = @written_at = now
          @io = @refused = @paused_at = @before = nil
          @cautious = @probing = @held = @closed = @far = false
          @incoming = ResponseReader.new(@pipeline, halted: -> { @closed || @paused_at }, tell: method(:tell))
        end

        def open? = !@io.nil? && !@closed

        def opening? = @io.nil? && !@closed

        def closed? = @closed

        def idle? = open? && @pipeline.unanswered.empty?

        def usable? = open? && !@held && !@paused_at && !@pipeline.last? && @refused.nil? && !@outgoing.reading?

        def unanswered = @pipeline.unanswered

        def load(mean) = @pipeline.bytes_to_come(mean)

        # What may stand before the line for this connection, when the line is slow. A server sends INITIAL_BURST on a new connection, and on another no more
        # at once than it has brought (RFC 5681, section 3.1).
        def due(mean)
          return 0.0 if paused? || unanswered.empty?
          burst = [PathEstimator::INITIAL_BURST + @brought, StallDetector::LARGE_BYTES].min
          return burst.to_f unless mean
          rest = @pipeline.response&.content_length&.-(@pipeline.came_of_response)
          [burst, LARGER * ((unanswered.size - 1) * mean + (rest || mean))].min.to_f
        end

        # To be called in each turn.
        def listen(due, now) = @silence.look(due, now)

        def request_delay = @before && Transport.of(@io)&.longer_than(@before)

        def silent_since = @silence.since(@moved_at)

        def excused?(seconds, now) = @silence.excused?(@io, silent_since, seconds, now)

        # Seconds since something was under way.
        def rest(now) = now - @moved_at

        # Nothing is read until {#resume}: who takes the answer cannot take more.
        def pause = @paused_at ||= now

        def resume
          if paused?
            move(now)
            @pipeline.resumed(@moved_at)
          end
          @paused_at = nil
        end

        def paused? = !@paused_at.nil?

        attr_reader :paused_at

        attr_reader :rested

        # Asks. What is asked together is written together; see {RequestWriter#add_in_pieces} for a long way.
        def ask(exchanges, now, round_trip: nil, enough: nil)
          @written_at = now if @outgoing.empty?
          if (was_idle = idle?)
            @rested = rest(now)
            move(now)
          end
          @far = round_trip && round_trip > FAR
          @before = (Transport.of(@io) if @far && was_idle && @asked.zero?)
          requests = exchanges.map { |exchange| enter(exchange, now) }
          unfinished = @far && enough && exchanges.last.pipelined? && unanswered.size > enough
          ends = (@far && was_idle) ? @outgoing.add_in_pieces(requests, unfinished: unfinished) : @outgoing.add(requests, unfinished: unfinished)
          exchanges.zip(ends) { |exchange, position| exchange.ends_at = position }
        end

        # Finishes the request that was left unfinished, when nothing more is to be asked behind it or the server has too little to do.
        def finish_unless(enough)
          @outgoing.finish if @outgoing.unfinished? && (enough.nil? || unanswered.size <= enough)
        end

        # Nothing more is asked after the one whose turn it is, and what was to be asked after it is not written, as far as it was not already.
        def give_up_tail
          tail = @pipeline.give_up_tail
          @outgoing.cut(unanswered.first.ends_at) if tail.any?
          tail
        end

        def ready?(ios) = ios.key?(@io) || pending? || (!@outgoing.awaited.nil? && ios.key?(@outgoing.awaited))

        # Goes on as far as it can.
        def step(now)
          return if @closed
          return go_on_opening(now) if opening?
          write(now) unless @outgoing.idle?
          read(now) unless @paused_at || @closed
        end

        def writes? = open? && !@outgoing.empty?

        # Writes what waits, and no more.
        def flush(now)
          write(now) if writes?
        end

        def reading
          return @opening.reading unless @io
          return reading_for_body if @outgoing.awaited
          (@paused_at || @closed) ? NONE : @alone
        end

        def writing
          return @opening.writing unless @io
          (@closed || @outgoing.empty?) ? NONE : @alone
        end

        def pending? = (!@paused_at && @io.respond_to?(:pending) && @io.pending.positive?) || (!@outgoing.awaited.nil? && @outgoing.awaited.closed?)

        def deadline
          return @opening.deadline unless @io
          return if @paused_at
          phase = phase_of_waiting or return
          silent = ((phase == :write) ? @written_at : [@moved_at, @written_at].max) + @patience.seconds(phase)
          bound = (@pipeline.ends_by(@patience.seconds(:head)) if phase == :read)
          (bound && bound < silent) ? bound : silent
        end

        def expired?(now) = open? && !(limit = deadline).nil? && now >= limit

        def expire(now)
          return forsake if @outgoing.awaited && unanswered.all?(&:canceled?)
          return false unless expired?(now)
          phase = phase_of_waiting
          phase = :head if phase == :read && @pipeline.head_late?(@patience.seconds(:head), now)
          break_off(:timeout, @patience.error(phase))
          true
        end

        # Whether an idle connection still stands, as far as can be seen.
        def alive?
          @io.read_nonblock(1, exception: false) == :wait_readable
        rescue *CLOSED
          false
        end

        def close
          return if @closed
          @closed = true
          @opening.close
          @io&.close
        rescue *CLOSED
          nil
        end

        def inspect = "#<#{self.class} #{@route} #{"opening, " if opening?}#{"closed, " if @closed}#{unanswered.size} unanswered>"

        private

        def go_on_opening(now)
          @io = @opening.step(now) or return
          @alone = [@io].freeze
          @moved_at = now
          @owner.opened(@opening.round_trip)
        rescue RequestFailed => error
          break_off(:refused, error)
        end

        def move(now)
          @moved_at = now
          @silence.broken
        end

        def reading_for_body
          return NONE if @closed
          [(@io unless @paused_at), (@outgoing.awaited unless @outgoing.awaited.closed?)].compact
        end

        # Who gave the body does not want the answer any more, or has it.
        def forsake
          break_off(:unwanted, nil)
          true
        end

        # While more of a body is waited for it is not the server that does nothing.
        def phase_of_waiting
          return if @outgoing.awaited
          return :write unless @outgoing.empty?
          return if unanswered.empty?
          @pipeline.begun? ? :read : :first_byte
        end

        def enter(exchange, now)
          bytes = RequestSerializer.request(exchange.request, @settings, @route, first: @asked.zero?)
          @asked += 1
          @outgoing.read_from(upload(exchange.request)) if exchange.request.once?
          exchange.sent!(now)
          @pipeline.push(exchange)
          bytes
        end

        def upload(request) = RequestBody.new(request.body, request.address.url, request.length)

        def write(now)
          return if @refused
          waited = @outgoing.awaited
          @written_at = now if @outgoing.write(@io) || (waited && !@outgoing.awaited)
        rescue BodyFailed => error
          break_off(:body, error)
        rescue *CLOSED => error
          # What has come may still be read, and tells more: RFC 9112, section 9.6.
          @refused = error
          @outgoing.clear
        end

        def read(now)
          cause, error = @incoming.read(@io, now) do |count|
            move(now)
            @brought += count
            @line.received(count, now)
            @owner.received(count, now)
          end
          return break_off(cause, error) if cause
          # On a slow, long way it would be one more packet in the uplink.
          @incoming.acknowledge(@io) if !@far && @pipeline.midway? && !@route.unix_socket
        rescue *CLOSED => error
          break_off(:reset, error)
        end

        def tell(event, exchange, response, size)
          (event == :head) ? @owner.head(self, response) : @owner.answered(self, exchange, response, size)
        end

        def break_off(cause, error)
          return if @closed
          close
          @owner.broke(self, cause, error)
        end
      end

      # How long the other side of a connection may do nothing, and what is said when it has.
      class ConnectionTimeouts
        SILENCE = {write: "took nothing", first_byte: "gave no answer", head: "did not finish the head of its answer", read: "gave no more of its answer"}.freeze
        private_constant :SILENCE

        def initialize(route, timeouts)
          @route = route
          @timeouts = timeouts
        end

        def seconds(phase) = @timeouts.public_send(phase)

        def error(phase) = TimedOut.new("#{@route} #{SILENCE.fetch(phase)} for #{seconds(phase)} s", phase: phase)
      end
    end
  end
end
