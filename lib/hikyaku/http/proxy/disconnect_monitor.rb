# frozen_string_literal: true

require_relative "../../support/clock"

module Hikyaku
  module HTTP
    class Proxy
      # Notices browsers that disconnect while they await a response, and cancels their requests: those that no server has yet, and others if they would delay the
      # next requests, see {Client#abandon}.
      #
      # A half-closed connection looks the same. Its client still gets the response unless the response is slow and delays others. Browsers and curl close both
      # halves.
      class DisconnectMonitor
        include Support::Clock

        # Seconds between two looks at the connections.
        PAUSE = 0.1
        # Seconds between two looks at cancelled requests that still await a response: the server may never answer.
        RETRY = 1.0
        # Seconds without a request after which the proxy is idle.
        QUIET = 5.0
        private_constant :PAUSE, :RETRY, :QUIET

        def initialize(quiet: QUIET, &on_idle)
          @quiet = quiet
          @on_idle = on_idle
          @last_request_at = nil
          @lock = Mutex.new
          @added = ConditionVariable.new
          @watched = {}.compare_by_identity
          @cancelled = []
          @retry_at = 0.0
          @thread = nil
        end

        # Watches a connection during the block. If the browser disconnects, `on_disconnect` returns the client and the stream to cancel, or nil.
        def watch(browser, on_disconnect)
          @lock.synchronize do
            @watched[browser] = on_disconnect
            @last_request_at = now
            @thread = Thread.new { run } unless @thread&.alive?
            @added.signal if @watched.size == 1
          end
          yield
        ensure
          @lock.synchronize do
            @watched.delete(browser)
            @last_request_at = now
          end
        end

        def close = @thread&.kill

        private

        def run
          loop do
            sleep PAUSE
            gone = @lock.synchronize do
              wait_for_request while @watched.empty? && @cancelled.empty?
              @watched.select { |browser, _| browser.disconnected? }.each_key { |browser| @watched.delete(browser) }
            end
            cancel(gone.each_value.filter_map(&:call)) if gone.any? || (@cancelled.any? && now >= @retry_at)
          end
        end

        def wait_for_request
          quiet = @last_request_at ? @last_request_at + @quiet - now : nil
          return @added.wait(@lock, quiet) if quiet.nil? || quiet.positive?
          @last_request_at = nil
          @lock.unlock
          begin
            @on_idle&.call
          ensure
            @lock.lock
          end
        end

        # Requests that were cancelled before, and are still under way, delay others as well.
        def cancel(pairs)
          @cancelled = @cancelled.reject { |_, stream| stream.done? } + pairs
          @retry_at = now + RETRY
          @cancelled.group_by(&:first).each do |client, all|
            streams = all.map(&:last).each(&:withdraw)
            client.abandon(streams)
          end
        end
      end
    end
  end
end
