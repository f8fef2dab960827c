# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      # Carries bytes between two sockets, both ways, until both sides have said their last: CONNECT, and what was upgraded. Nothing is read that the
      # other side cannot take.
      #
      # RFC 9110, section 9.3.6.
      class Tunnel
        PIECE = 65_536
        private_constant :PIECE

        # One way.
        class Lane
          attr_reader :from
          attr_reader :to

          def initialize(from, to, first = "")
            @from = from
            @to = to
            @left = first.b
            @ended = false
          end

          def reads? = @left.empty? && !@ended

          def writes? = !@left.empty?

          def over? = @ended && @left.empty?

          def step
            fill if @left.empty? && !@ended
            drain unless @left.empty?
          end

          private

          def fill
            bytes = @from.read_nonblock(PIECE, exception: false)
            return if bytes == :wait_readable
            return finish if bytes.nil?
            @left = bytes
          end

          def drain
            count = @to.write_nonblock(@left, exception: false)
            @left = @left.byteslice(count..) unless count == :wait_writable
          end

          def finish
            @ended = true
            @to.close_write
          rescue SystemCallError
            nil
          end
        end
        private_constant :Lane

        def initialize(browser, server, from_browser: "", from_server: "", idle: 600)
          @lanes = [Lane.new(browser, server, from_browser), Lane.new(server, browser, from_server)]
          @idle = idle
        end

        def run
          until @lanes.all?(&:over?)
            reading, writing = @lanes.select(&:reads?).map(&:from), @lanes.select(&:writes?).map(&:to)
            return unless IO.select(reading, writing, nil, @idle)
            @lanes.each(&:step)
          end
        rescue SystemCallError, IOError
          nil
        end
      end
    end
  end
end
