# frozen_string_literal: true

require_relative "opening"
require_relative "pipeline"
require_relative "wire"

module Hikyaku
  module HTTP
    class Client
      # One connection to a server, and what is under way on it. It never waits: {ServerManager} says what to ask, the driver when to go on.
      #
      #     opening ──► open ──► last (nothing more is asked) ──► closed
      #
      # Its owner is told `opened(round_trip)`, `head(connection, response)`, `answered(connection, exchange, response, bytes)`, and at last, once,
      # `broke(connection, cause, error)`.
      class Connection
        READ_BYTES = 65_536
        READS = 16 # at once: others want their turn
        SEGMENT = 1_300 # bytes of requests that surely go in one packet
        FIRST_REQUESTS = 2 # in the first packet, so that the server begins early
        BODY_PIECE = 65_536
        # Two writes cost more than they gain on a shorter way.
        FAR = 0.02 # seconds of a round trip
        CLOSED = [IOError, SystemCallError, OpenSSL::SSL::SSLError].freeze
        private_constant :READ_BYTES, :READS, :SEGMENT, :FIRST_REQUESTS, :BODY_PIECE, :FAR, :CLOSED

        # @return [Pipeline]
        attr_reader :pipeline
        # @return [Float] seconds of the monotonic clock, when something last came, or was written on a connection that was idle
        attr_reader :moved_at
        # @return [Integer] requests that were written
        attr_reader :asked
        # @return [Boolean] whether one request at a time is asked for now: the connection before it broke off
        attr_accessor :cautious
        # @return [Boolean] whether two requests were written at once, to see what becomes of the second
        attr_accessor :probing

        # @return [Boolean] whether nothing is asked behind what is coming, which is long
        attr_accessor :held

        # @param route [Route]
        # @param settings [Settings]
        # @param owner [ServerManager]
        # @param wake [#call] see {Dialer#initialize}
        # @param now [Float]
        def initialize(route, settings, owner:, wake:, now:)
          @route = route
          @settings = settings
          @owner = owner
          @opening = Opening.new(route, settings, wake: wake)
          @pipeline = Pipeline.new(tags: settings.cache, **settings.limits)
          @segments = []
          @asked = 0
          @rested = 0.0
          @moved_at = @written_at = now
          @io = @source = @refused = nil
          @cautious = @probing = @held = @last = @closed = @paused = false
          @buffer = String.new(capacity: READ_BYTES, encoding: Encoding::BINARY)
        end

        # @return [Boolean]
        def open? = !@io.nil? && !@closed

        # @return [Boolean]
        def opening? = @io.nil? && !@closed

        # @return [Boolean]
        def closed? = @closed

        # @return [Boolean] whether nothing is under way
        def idle? = open? && @pipeline.unanswered.empty?

        # @return [Boolean] whether more may be asked
        def usable? = open? && !@last && !@held && !@pipeline.last? && @refused.nil? && @source.nil?

        # @return [Array<Exchange>]
        def unanswered = @pipeline.unanswered

        # @return [Float] bytes of answers that are under way, about
        def load(mean) = unanswered.sum { |exchange| exchange.expected_bytes(mean) }

        # Seconds since something was under way.
        def rest(now) = now - @moved_at

        # Nothing more is asked after what is under way.
        #
        # @return [void]
        def last! = @last = true

        # Nothing is read until {#resume}: who takes the answer cannot take more.
        #
        # @return [void]
        def pause = @paused = true

        # @return [void]
        def resume
          @moved_at = Process.clock_gettime(Process::CLOCK_MONOTONIC) if @paused
          @paused = false
        end

        # @return [Boolean]
        def paused? = @paused

        # @return [Float] seconds that it had been idle before something was asked
        attr_reader :rested

        # Asks. What is asked together is written together, but for the first packet.
        #
        # @param exchanges [Array<Exchange>]
        # @param now [Float]
        # @param round_trip [Float, nil] seconds
        # @return [void]
        def ask(exchanges, now, round_trip: nil)
          @written_at = now if @segments.empty?
          if (was_idle = idle?)
            @rested = rest(now)
            @moved_at = now
          end
          requests = exchanges.map { |exchange| enter(exchange, now) }
          if round_trip && round_trip > FAR
            first = was_idle ? requests.shift(FIRST_REQUESTS).join : nil
            @segments << first if first
            pack(requests)
          else
            @segments << requests.join
          end
        end

        # @param ios [Hash{IO => Object}]
        # @return [Boolean] whether it can go on
        def ready?(ios) = ios.key?(@io) || pending?

        # Goes on as far as it can.
        #
        # @param now [Float]
        # @return [void]
        def step(now)
          return if @closed
          return go_on_opening(now) if opening?
          write(now)
          read(now) unless @paused
        end

        # Writes what waits, and no more.
        #
        # @return [void]
        def flush(now)
          write(now) if open? && !@segments.empty?
        end

        # @return [Array<IO>] that it waits for to become readable
        def reading
          return @opening.reading unless @io
          (@paused || @closed) ? [] : [@io]
        end

        # @return [Array<IO>] the same of writable
        def writing
          return @opening.writing unless @io
          (@segments.any? && @refused.nil?) ? [@io] : []
        end

        # @return [Boolean] whether there are bytes that no system call tells of: TLS has read them
        def pending? = !@paused && @io.respond_to?(:pending) && @io.pending.positive?

        # @return [Float, nil] seconds of the monotonic clock, when something has taken too long
        def deadline
          return @opening.deadline unless @io
          return if @paused
          timeouts = @settings.timeouts
          return @written_at + timeouts.write if @segments.any?
          return if unanswered.empty?
          [@moved_at, @written_at].max + (@pipeline.begun? ? timeouts.read : timeouts.first_byte)
        end

        # @return [Boolean] whether it is closed now because of that
        def expire(now)
          limit = deadline
          return false if limit.nil? || now < limit || opening?
          phase = phase_of_waiting
          break_off(:timeout, TimedOut.new("#{@route} #{SILENCE.fetch(phase)} for #{@settings.timeouts.public_send(phase)} s", phase: phase))
          true
        end

        SILENCE = {write: "took nothing", first_byte: "gave no answer", read: "gave no more of its answer"}.freeze
        private_constant :SILENCE

        # Whether an idle connection still stands, as far as can be seen.
        #
        # @return [Boolean]
        def alive?
          @io.read_nonblock(1, exception: false) == :wait_readable
        rescue *CLOSED
          false
        end

        # @return [void]
        def close
          return if @closed
          @closed = true
          @opening.close
          @io&.close
        rescue *CLOSED
          nil
        end

        # @return [String]
        def inspect = "#<#{self.class} #{@route} #{"opening, " if opening?}#{"closed, " if @closed}#{unanswered.size} unanswered>"

        private

        def go_on_opening(now)
          @io = @opening.step(now) or return
          @moved_at = now
          @owner.opened(@opening.round_trip)
        rescue RequestFailed => error
          break_off(:refused, error)
        end

        def phase_of_waiting
          return :write if @segments.any?
          @pipeline.begun? ? :read : :first_byte
        end

        def enter(exchange, now)
          bytes = Wire.request(exchange.request, @settings, @route, first: @asked.zero?)
          @asked += 1
          @source = exchange.request.body if exchange.request.once?
          exchange.sent!(now)
          @pipeline.push(exchange)
          bytes
        end

        # Whole requests, as many as go into a packet.
        def pack(requests)
          requests.each do |bytes|
            if @packed && @segments.last.equal?(@packed) && @packed.bytesize + bytes.bytesize <= SEGMENT
              @packed << bytes
            else
              @segments << (@packed = bytes)
            end
          end
          @packed = nil
        end

        def write(now)
          while (bytes = @segments.first || next_of_body)
            count = @io.write_nonblock(bytes, exception: false)
            return if count.is_a?(Symbol)
            @written_at = now
            (count == bytes.bytesize) ? @segments.shift : @segments[0] = bytes.byteslice(count..)
          end
        rescue *CLOSED => error
          # What has come may still be read, and tells more: RFC 9112, section 9.6.
          @refused = error
          @segments.clear
        end

        def next_of_body
          return unless @source
          piece = @source.read(BODY_PIECE)
          @segments << Wire.chunk(piece.to_s.b)
          @source = nil if piece.nil? || piece.empty?
          @segments.first
        end

        def read(now)
          READS.times do
            bytes = @io.read_nonblock(READ_BYTES, @buffer, exception: false)
            return if bytes.is_a?(Symbol)
            return ended(now) if bytes.nil?
            @moved_at = now
            receive(bytes, now)
            return if @closed || @paused
          end
        rescue *CLOSED => error
          break_off(:reset, error)
        end

        def receive(bytes, now)
          @owner.received(bytes.bytesize, now)
          @pipeline.receive(bytes, now) { |event, *about| tell(event, *about) }
          break_off(:last, nil) if @pipeline.over? || (@last && unanswered.empty?)
        rescue Pipeline::Doubtful => error
          break_off(error.surplus? ? :surplus : :doubtful, error)
        rescue Pipeline::Balked
          break_off(:balked, nil)
        rescue Pipeline::Unwanted
          break_off(:unwanted, nil)
        rescue Parser::Malformed => error
          break_off(:corrupt, error)
        end

        def tell(event, exchange, response, size)
          (event == :head) ? @owner.head(self, response) : @owner.answered(self, exchange, response, size)
        end

        def ended(now)
          @pipeline.close(now) { |event, *about| tell(event, *about) }
          break_off(:closed, nil)
        rescue Parser::Malformed => error
          break_off((error.reason == :truncated) ? :closed : :corrupt, error)
        rescue Pipeline::Doubtful => error
          break_off(:doubtful, error)
        end

        def break_off(cause, error)
          return if @closed
          close
          @owner.broke(self, cause, error)
        end
      end
    end
  end
end
