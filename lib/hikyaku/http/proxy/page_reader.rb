# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "../content_coding"
require_relative "scanner"

module Hikyaku
  module HTTP
    class Proxy
      # Scans a page while it streams through, and reports what it contains after each piece. It stops if the browser has left, or if the budget of the page or of
      # the user is spent.
      #
      # One thread of Ruby runs at a time, so that a scan delays all others. Therefore one page of the process is scanned at a time, in slices, and other threads run
      # between two slices.
      class PageReader
        HTML = %r{\A\s*(?:text/html|application/xhtml\+xml)\s*(?:;|\z)}i
        CHARSET = /charset\s*=\s*"?([^\s";]+)/i
        MAX_BYTES = 4_194_304 # decoded
        MAX_SECONDS = 1.0 # of a processor
        SLICE = 2_048 # bytes, which take 5 ms at worst
        TURN = Mutex.new
        private_constant :HTML, :CHARSET, :MAX_BYTES, :MAX_SECONDS, :SLICE, :TURN

        # Processor seconds and bytes, which refill over the period, as in a token bucket. Thread-safe.
        class Budget
          def initialize(seconds:, bytes:, period: nil, clock: Support::Clock::MONOTONIC)
            @max = [seconds, bytes].map(&:to_f)
            @left = @max.dup
            @period = period
            @clock = clock
            @at = clock.call
            @lock = Mutex.new
          end

          def left? = @lock.synchronize { refill.all?(&:positive?) }

          # The work is done already, so that it may exceed what was left.
          def spend(seconds, bytes)
            @lock.synchronize { @left = refill.zip([seconds, bytes]).map { |left, spent| left - spent } }
          end

          private

          def refill
            return @left unless @period
            from, @at = @at, @clock.call
            @left = @left.zip(@max).map { |left, max| [left + max * (@at - from) / @period, max].min }
          end
        end

        class << self
          # Nil for a response that is no page, or has an unknown content coding. The block gets the subresources and the frames that a piece contained.
          def of(response, url, budget:, wanted: -> { true }, &on_found)
            type = response["content-type"].to_s
            return unless type.match?(HTML)
            decoder = ContentCoding.decoder(response["content-encoding"].to_s.split(","), max_bytes: MAX_BYTES)
            new(Scanner.new(base: url, charset: type[CHARSET, 1], policies: policies_of(response)), decoder, budget, wanted, &on_found)
          rescue ContentCoding::Unsupported
            nil
          end

          private

          # With an Integrity-Policy it is not sure that scripts and style sheets load.
          def policies_of(response)
            policies = response.headers.filter_map { |name, value| value if name == "content-security-policy" }
            response["integrity-policy"] ? [*policies, "script-src 'none'; style-src 'none'"] : policies
          end
        end

        def initialize(scanner, decoder, budget, wanted, clock: -> { Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) }, &on_found)
          @scanner = scanner
          @decoder = decoder
          @budgets = [Budget.new(seconds: MAX_SECONDS, bytes: MAX_BYTES), budget]
          @wanted = wanted
          @clock = clock
          @on_found = on_found
          @done = false
        end

        def <<(piece)
          return if done?
          text = charge { @decoder ? @decoder << piece : piece }
          found = []
          0.step(text.bytesize - 1, SLICE) { |at| done? ? break : found.concat(scan(text.byteslice(at, SLICE))) }
          @on_found.call(found, @scanner.frames) if @wanted.call
        rescue ContentCoding::Corrupt, ContentCoding::TooLarge
          @done = true
        end

        private

        def done? = @done ||= @scanner.done? || !@wanted.call || !@budgets.all?(&:left?)

        def scan(slice)
          TURN.synchronize { charge(slice.bytesize) { @scanner << slice } }
        ensure
          Thread.pass
        end

        def charge(bytes = 0)
          from = @clock.call
          yield
        ensure
          @budgets.each { |budget| budget.spend(@clock.call - from, bytes) }
        end
      end
    end
  end
end
