# frozen_string_literal: true

require_relative "signals"

module Hikyaku
  class Server
    # A server that runs until a signal tells it to stop, or until it ends by itself. A second signal ends the process at
    # once.
    #
    # Whoever is it has `@logger`, `stop` (false: it did not end in order) and `fail_early`, which says why it ended by
    # itself and returns the exit code; and tells END to the signals when that happens.
    #
    # @api private
    module Signalled
      AT_ONCE_SECONDS = 1
      private_constant :AT_ONCE_SECONDS

      private

      # @param at_once [#call] what cannot wait even when the process ends at once
      # @yieldparam signals [Signals] installed: now it is to start
      # @return [Integer] the exit code
      def until_signalled(at_once: -> {})
        signals = Signals.new.install
        yield signals
        name = signals.wait
        return fail_early if name == "END"

        @logger.info("stopping on #{name}")
        impatience = hurry(signals, at_once)
        return 1 unless stop
        @logger.info("stopped")
        0
      ensure
        impatience&.kill
        signals&.restore
      end

      # A second signal: whoever sends it does not want to wait.
      def hurry(signals, at_once)
        Thread.new do
          nil until Signals::STOP.include?(signals.wait)
          Thread.new(&at_once).join(AT_ONCE_SECONDS)
          exit!(1)
        end
      end
    end
  end
end
