# frozen_string_literal: true

require_relative "../log/journal/errors"

module Hikyaku
  class Server
    # A server that runs until a signal tells it to stop, or until it ends by itself. A second signal ends the process at
    # once. HUP makes it read its keys again. A signal to stop that comes while a journal is read ends that.
    #
    # Whoever is it has `@logger`, `reload`, `stop` (false: it did not end in order) and `fail_early`, which says why it ended by
    # itself and returns the exit code; and tells END to the signals when that happens.
    module SignalHandling
      AT_ONCE_SECONDS = 1
      private_constant :AT_ONCE_SECONDS

      private

      def until_signalled(at_once: -> {})
        signals = Signals.new { @starting&.raise(Hikyaku::Log::Journal::Interrupted, "a signal came while the journal was read") }.install
        started = begin_unless_stopped { yield signals }
        name = signals.wait
        while name == Signals::RELOAD
          reread
          name = signals.wait
        end
        return stopped_early(name) unless started
        return fail_early if name == "END"

        @logger.info("stopping on #{name}")
        impatience = hurry(signals, at_once)
        in_order = stop
        # What a second signal closes can end the stop, too, before that signal ends the process.
        return 1 if @at_once || !in_order
        @logger.info("stopped")
        0
      ensure
        impatience&.kill
        signals&.restore
      end

      # A signal to stop ends the reading of a journal, and nothing else that belongs to the start.
      def begin_unless_stopped
        started = false
        @starting = Thread.current
        Thread.handle_interrupt(Hikyaku::Log::Journal::Interrupted => :never) do
          yield
          started = true
        ensure
          @starting = nil
        end
        started
      rescue Hikyaku::Log::Journal::Interrupted
        started
      end

      def stopped_early(name)
        @logger.info("stopped on #{name}, while the journal was read: nothing was changed")
        0
      end

      def reread
        @logger.info("reading keys again on #{Signals::RELOAD}")
        reload
      rescue => error
        @logger.error("keys cannot be read again: #{error.class}: #{error.message}")
      end

      # A second signal: whoever sends it does not want to wait.
      def hurry(signals, at_once)
        Thread.new do
          nil until Signals::STOP.include?(signals.wait)
          @at_once = true
          Thread.new(&at_once).join(AT_ONCE_SECONDS)
          exit!(1)
        end
      end
    end

    # Waits for TERM, INT and HUP, and for the process itself to say that it is over.
    class Signals
      STOP = %w[TERM INT].freeze
      # Keys are to be read again. A terminal that closes sends it too, which is no reason to stop a hub.
      RELOAD = "HUP"

      def initialize(&on_stop)
        @on_stop = on_stop
        @reader, @writer = IO.pipe
        @previous = {}
      end

      def install
        STOP.each do |name|
          @previous[name] = trap(name) do
            tell(name)
            @on_stop&.call
          end
        end
        @previous[RELOAD] = trap(RELOAD) { tell(RELOAD) }
        self
      end

      def wait = @reader.gets.to_s.chomp

      def tell(name)
        @writer.write_nonblock("#{name}\n")
      rescue IOError, SystemCallError
        nil
      end

      def restore
        @previous.each { |name, handler| trap(name, handler || "DEFAULT") }
        @previous.clear
        [@reader, @writer].each(&:close)
      end

      private

      def trap(name, ...) = Signal.trap(name, ...)
    end
  end
end
