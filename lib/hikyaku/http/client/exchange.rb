# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # One request on its way, until its answer is whole: what is repeated when a connection breaks off.
      #
      # Its listener is told `answered(response)`, then `came(bytes)` as often as needed, and `unfinished` whenever all that came so far was told and it was
      # not the end, then `finished(seconds)`; or `failed(error)`. When
      # the answer has to be fetched anew after it began, it is asked `restart`, and says whether that can be.
      class Exchange
        # RFC 9110, section 9.2.2: a repetition that fails is not repeated.
        MOST_ATTEMPTS = 2
        # Bytes of an answer that says that nothing has changed.
        UNCHANGED_BYTES = 300.0
        VALIDATORS = %w[if-none-match if-modified-since].freeze
        private_constant :MOST_ATTEMPTS, :UNCHANGED_BYTES, :VALIDATORS

        # @return [Request]
        attr_reader :request
        # @return [#answered, #came, #unfinished, #finished, #failed, #restart]
        attr_reader :listener
        # @return [Integer] in what order it was asked for
        attr_reader :number
        # @return [Float, nil] seconds of the monotonic clock, when it was last written
        attr_accessor :sent_at
        # @return [Float, nil] the same, when its answer began to come
        attr_accessor :begun_at

        # @return [Integer, nil] where it ends in all that is written to its connection
        attr_accessor :ends_at
        # @return [Symbol, nil] what it was taken for when it did not come: see {Verdict#forgive}
        attr_accessor :suspected

        # @param request [Request]
        # @param listener [Object]
        # @param number [Integer]
        def initialize(request, listener, number:)
          @request = request
          @listener = listener
          @number = number
          @attempts = 0
          @sent_at = @begun_at = nil
          @canceled = @solitary = @led_elsewhere = false
          @conditional = VALIDATORS.any? { |name| request[name] } unless request.headers.empty?
        end

        # @return [Boolean] whether it asks only for what has changed
        def conditional? = !!@conditional

        # @param mean [Float] bytes of an answer
        # @return [Float] bytes that its answer will have, about
        def expected_bytes(mean) = conditional? ? UNCHANGED_BYTES : mean

        # @return [Boolean] whether others may be under way on its connection
        def pipelined? = !@solitary && @request.pipelined?

        # From now on it goes by itself: there was doubt about the answer that it had.
        #
        # @return [void]
        def solitary! = @solitary = true

        # @return [Boolean] whether it wants a connection that was not used before
        def solitary? = @solitary

        # It leads elsewhere, as its head says: what is left of it is wanted as far as it is soon there.
        #
        # @return [void]
        def led_elsewhere! = @canceled = @led_elsewhere = true

        # @return [Boolean]
        def led_elsewhere? = @led_elsewhere

        # Nobody wants the answer any more.
        #
        # @return [void]
        def cancel! = @canceled = true

        # @return [Boolean]
        def canceled? = @canceled

        # It is written, and counts as an attempt unless it turns out that the server never looked at it.
        #
        # @return [void]
        def sent!(now)
          @sent_at = now
          @begun_at = nil
        end

        # It was this one's turn, and the answer did not come, or not all of it: the server may have heard it.
        #
        # @return [void]
        def tried! = @attempts += 1

        # @return [Boolean] whether it may be sent again; its listener is asked where the answer had begun
        def again? = @request.idempotent? && @attempts < MOST_ATTEMPTS && (@begun_at.nil? || @listener.restart)

        # @return [String]
        def inspect = "#<#{self.class} #{@number} #{@request.inspect}>"
      end
    end
  end
end
