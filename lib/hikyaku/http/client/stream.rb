# frozen_string_literal: true

require_relative "fetch"

module Hikyaku
  module HTTP
    class Client
      # An answer whose body is taken piece by piece, as it comes; no piece is larger than a megabyte. Made by {Client#open}. Who takes slowly slows the server
      # down: no more than a little is kept.
      class Stream < Fetch
        include Enumerable

        HIGH = 262_144 # bytes that wait to be taken; then nothing more is read
        LOW = 65_536
        PIECE = 65_536 # of what came whole
        private_constant :HIGH, :LOW, :PIECE

        # @api private
        def initialize(...)
          super
          @pieces = []
          @bytes = 0
          @interims = []
          @head = @flow = nil
          @waits_for = :head
        end

        # Waits for the head, and gives what the server says before it (1xx), each once.
        #
        # @yieldparam response [Parser::Response]
        # @return [void]
        # @api private
        def each_interim
          loop do
            @waits_for = :word
            @driver.wait(self)
            yield(@driver.synchronize { @interims.shift } || break)
          end
        end

        # Waits for the head.
        #
        # @return [Integer]
        # @raise [RequestFailed]
        def status = head.status

        # Waits for the head.
        #
        # @return [Array<Array(String, String)>] names in lower case, and values
        # @raise [RequestFailed]
        def headers = head.headers

        # Waits for the head.
        #
        # @return [String] see {Response#http_version}
        # @raise [RequestFailed]
        def http_version = head.http_version

        # Waits for the head.
        #
        # @return [Boolean]
        # @raise [RequestFailed]
        def ok? = head.ok?

        # Waits for the head.
        #
        # @return [Boolean] see {Response#cached?}
        # @raise [RequestFailed]
        # @api private
        def cached? = head.cached?

        # @param name [String] in any case
        # @return [String, nil]
        # @raise [RequestFailed]
        def [](name) = head[name]

        # Waits for the head.
        #
        # @return [self]
        # @raise [BadStatus] the status is 400 or above; its response has no body
        # @raise [RequestFailed]
        def raise_for_status
          head.raise_for_status
          self
        end

        # Gives the body, each piece once.
        #
        # @yieldparam piece [String] binary
        # @return [self, Enumerator]
        # @raise [RequestFailed]
        def each
          return enum_for(:each) unless block_given?
          head
          while (piece = take)
            yield piece
          end
          self
        end

        # @return [String] all that was not taken yet
        # @raise [RequestFailed]
        def read = each.inject(String.new(encoding: Encoding::BINARY)) { |body, piece| body << piece }

        # @return [void]
        def close = cancel

        # @api private
        def satisfied? = done? || there?

        # @api private
        # @param response [Parser::Response]
        def interim(response)
          @interims << response unless @head
          @news.broadcast
        end

        # What came whole, from the cache, is given as if it had come in pieces.
        #
        # @api private
        def complete(outcome)
          unless done? || @head || outcome.error
            head_came(outcome, nil)
            (0...outcome.body.bytesize).step(PIECE) { |at| push(outcome.body.byteslice(at, PIECE)) }
          end
          super
        end

        # @api private
        # @param response [Response] without a body
        # @param flow [#pause, #resume, nil] what brings the pieces
        def head_came(response, flow)
          @head = response
          @flow = flow
          @news.broadcast
        end

        # @api private
        def push(piece)
          return if piece.empty?
          @pieces << piece
          @bytes += piece.bytesize
          @flow&.pause if full?
          @news.broadcast
        end

        # @api private
        # @return [Boolean] whether all that came is forgotten, as it comes anew: nobody has seen any of it
        def anew = false

        private

        def there?
          return @pieces.any? if @waits_for == :piece
          !@head.nil? || (@waits_for == :word && @interims.any?)
        end

        def full? = @bytes > HIGH

        def head
          return noticed(whole: false) { begun }.value if @notice
          @head || begun.value
        end

        def begun
          @waits_for = :head
          @driver.wait(self)
          @head || @outcome
        end

        def take
          @waits_for = :piece
          @driver.wait(self)
          @driver.synchronize do
            piece = @pieces.shift
            next ended unless piece
            @bytes -= piece.bytesize
            @flow&.resume if @bytes < LOW
            piece
          end
        end

        def ended
          @outcome.value
          nil
        end
      end
    end
  end
end
