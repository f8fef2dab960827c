# frozen_string_literal: true

module Hikyaku
  class Server
    # Keeps Puma's timeouts. The reactor of Puma 8.0.2 waits for the first of its connections to time out, and takes those
    # that have timed out from the beginning of the same list; but when a connection's timeout is put off, since a few bytes of a
    # request have come, the list is not sorted again. A few clients that send a byte a second so keep all others from ever
    # timing out. docs/upstream/puma-reactor-timeouts.md has the test and the patch.
    #
    # A Puma without the fault is left alone.
    module PumaTimeouts
      # Bytes a second below which a body does not put its timeout off any more; as in the engine in C.
      BODY_RATE = 512
      private_constant :BODY_RATE

      # For Puma::Reactor: whoever has another timeout gets another place.
      module Sorted
        private

        def wakeup!(client)
          super || (@timeouts.delete(client) && place(client))
        end

        def place(client)
          index = @timeouts.bsearch_index { |other| other.timeout_at > client.timeout_at }
          @timeouts.insert(index || @timeouts.size, client)
          nil
        end
      end

      # For Puma::Client: a head has so much time from its first byte, and a body that is too slow has no more time than one
      # that has stopped.
      module Deadlines
        def set_timeout(seconds)
          super
          phase = awaiting
          @deadline = (phase == @phase && !puts_off?(phase)) ? [@deadline, @timeout_at].min : @timeout_at
          @phase = phase
          @timeout_at = @deadline
        end

        # Another request begins.
        def reset
          @phase = nil
          super
        end

        private

        def awaiting
          return :body if in_data_phase
          (@buffer.nil? || @buffer.empty?) ? :request : :head
        end

        def puts_off?(phase)
          return phase == :request unless phase == :body
          seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - @body_read_start / 1000
          @body.pos >= seconds.floor * BODY_RATE
        end
      end

      # Puma's reactor with clients that are no clients, and a selector that does not wait: first one of two puts its timeout off, then
      # the reactor says for how long it would wait.
      class Trial
        # What the reactor asks a client.
        Client = Struct.new(:timeout, keyword_init: true) do
          alias_method :timeout_at, :timeout

          def io_ok? = true

          def to_io = self
        end
        SOON = 100
        LATER = 200
        MUCH_LATER = 1_000
        private_constant :Client, :SOON, :LATER, :MUCH_LATER

        def faulty?
          catch(:verdict) do
            first, second = [SOON, LATER].map { |timeout| Client.new(timeout: timeout) }
            reactor = ::Puma::Reactor.new(:auto) do |client|
              client.timeout = MUCH_LATER
              false
            end
            stand_in(reactor, first)
            [first, second].each { |client| reactor.add(client) }
            reactor.run(false)
            false
          end
        end

        def register(client, _events) = (@monitors ||= {}.compare_by_identity)[client] ||= Struct.new(:value).new

        def select(timeout)
          case @rounds = @rounds.to_i + 1
          when 1 then nil # both are added
          when 2 then yield @monitors.fetch(@first)
          else throw :verdict, timeout.to_i > LATER
          end
        end

        def wakeup = nil

        private

        def stand_in(reactor, first)
          @first = first
          reactor.instance_variable_get(:@selector).close
          reactor.instance_variable_set(:@selector, self)
        end
      end
      private_constant :Trial

      @lock = Mutex.new
      @done = false

      class << self
        # Does nothing where Puma is not loaded, or has not the fault.
        def install(logger)
          return @done if @done || !loaded?
          @lock.synchronize do
            guard(logger) if !@done && needed?
            @done = true
          end
        end

        def needed? = ::Puma::Reactor.private_method_defined?(:wakeup!) && Trial.new.faulty?

        private

        def loaded? = !!(defined?(::Puma::Reactor) && defined?(::Puma::Client))

        def guard(logger)
          ::Puma::Reactor.prepend(Sorted)
          ::Puma::Client.prepend(Deadlines)
          text = "the reactor of Puma #{::Puma::Const::PUMA_VERSION} forgets timeouts while clients send a few bytes at a time; Hikyaku keeps them"
          logger ? logger.info(text) : warn("hikyaku: #{text}")
        end
      end
    end
  end
end
