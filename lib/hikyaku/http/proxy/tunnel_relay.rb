# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      # Copies bytes between two sockets, in both directions, until both sides have closed theirs. It reads no more than the other side takes.
      #
      # RFC 9110, section 9.3.6.
      class TunnelRelay
        PIECE = 65_536
        private_constant :PIECE

        # One direction.
        class Direction
          attr_reader :from, :to

          def initialize(from, to, first = "")
            @from = from
            @to = to
            @buffer = first.b
            @ended = false
          end

          def reads? = @buffer.empty? && !@ended

          def writes? = !@buffer.empty?

          def done? = @ended && @buffer.empty?

          def step
            fill if reads?
            drain if writes?
          end

          private

          def fill
            bytes = @from.read_nonblock(PIECE, exception: false)
            return if bytes == :wait_readable
            return finish if bytes.nil?
            @buffer = bytes
          end

          def drain
            count = @to.write_nonblock(@buffer, exception: false)
            @buffer = @buffer.byteslice(count..) unless count == :wait_writable
          end

          def finish
            @ended = true
            @to.close_write
          rescue SystemCallError
            nil
          end
        end
        private_constant :Direction

        def initialize(browser, server, from_browser: "", from_server: "", idle: 600)
          @directions = [Direction.new(browser, server, from_browser), Direction.new(server, browser, from_server)]
          @idle = idle
        end

        def run
          until @directions.all?(&:done?)
            reading, writing = @directions.select(&:reads?).map(&:from), @directions.select(&:writes?).map(&:to)
            return unless IO.select(reading, writing, nil, @idle)
            @directions.each(&:step)
          end
        rescue SystemCallError, IOError
          nil
        end
      end
    end
  end
end
