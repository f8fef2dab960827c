# frozen_string_literal: true

require_relative "../content_coding"
require_relative "budget"
require_relative "scanner"

module Hikyaku
  module HTTP
    class Proxy
      # A page that is read as it passes: what it contains is told as soon as it is seen. Nothing more of it is read when nobody wants it any more, or when it has
      # cost what a page may cost, or those of one user.
      #
      # Ruby runs one thread at a time, so that who reads holds up all others. Therefore a page is read in slices, one page of the whole process at a time, and
      # after each slice those who wait go first.
      class Reading
        HTML = %r{\A\s*(?:text/html|application/xhtml\+xml)\s*(?:;|\z)}i
        CHARSET = /charset\s*=\s*"?([^\s";]+)/i
        MOST = 4_194_304 # bytes, decoded
        MOST_SECONDS = 1.0 # of a processor
        SLICE = 2_048 # bytes: five milliseconds, of tags that do nothing but cost time
        TURN = Mutex.new
        private_constant :HTML, :CHARSET, :MOST, :MOST_SECONDS, :SLICE, :TURN

        class << self
          def of(answer, url, budget:, wanted: -> { true }, &found)
            type = answer["content-type"].to_s
            return unless type.match?(HTML)
            decoder = ContentCoding.decoder(answer["content-encoding"].to_s.split(","), max_bytes: MOST)
            new(Scanner.new(base: url, charset: type[CHARSET, 1], policies: policies_of(answer)), decoder, budget, wanted, &found)
          rescue ContentCoding::Unsupported
            nil
          end

          private

          # What an Integrity-Policy asks of scripts and style sheets is not read: none is sure to be loaded.
          def policies_of(answer)
            policies = answer.headers.filter_map { |name, value| value if name == "content-security-policy" }
            answer["integrity-policy"] ? [*policies, "script-src 'none'; style-src 'none'"] : policies
          end
        end

        def initialize(scanner, decoder, budget, wanted, clock: -> { Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) }, &found)
          @scanner = scanner
          @decoder = decoder
          @budgets = [Budget.new(seconds: MOST_SECONDS, bytes: MOST), budget]
          @wanted = wanted
          @clock = clock
          @found = found
          @over = false
        end

        def take(piece)
          return if over?
          text = at_cost { @decoder ? @decoder << piece : piece }
          inlines = []
          0.step(text.bytesize - 1, SLICE) { |at| over? ? break : inlines.concat(read(text.byteslice(at, SLICE))) }
          @found.call(inlines, @scanner.frames) if @wanted.call
        rescue ContentCoding::Corrupt, ContentCoding::TooLarge
          @over = true
        end

        private

        def over? = @over ||= @scanner.done? || !@wanted.call || !@budgets.all?(&:left?)

        def read(slice)
          TURN.synchronize { at_cost(slice.bytesize) { @scanner << slice } }
        ensure
          Thread.pass
        end

        def at_cost(bytes = 0)
          from = @clock.call
          yield
        ensure
          @budgets.each { |budget| budget.spend(@clock.call - from, bytes) }
        end
      end
    end
  end
end
