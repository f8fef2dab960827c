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

        attr_reader :request
        attr_reader :listener
        attr_reader :number
        attr_accessor :sent_at
        attr_accessor :begun_at

        attr_accessor :ends_at
        attr_accessor :suspected

        def initialize(request, listener, number:)
          @request = request
          @listener = listener
          @number = number
          @attempts = 0
          @sent_at = @begun_at = nil
          @canceled = @solitary = @led_elsewhere = false
          @conditional = VALIDATORS.any? { |name| request[name] } unless request.headers.empty?
        end

        def conditional? = !!@conditional

        def expected_bytes(mean) = conditional? ? UNCHANGED_BYTES : mean

        def pipelined? = !@solitary && @request.pipelined?

        # From now on it goes by itself: there was doubt about the answer that it had.
        def solitary! = @solitary = true

        def solitary? = @solitary

        # It leads elsewhere, as its head says: what is left of it is wanted as far as it is soon there.
        def led_elsewhere! = @canceled = @led_elsewhere = true

        def led_elsewhere? = @led_elsewhere

        # Nobody wants the answer any more.
        def cancel! = @canceled = true

        def canceled? = @canceled

        # It is written, and counts as an attempt unless it turns out that the server never looked at it.
        def sent!(now)
          @sent_at = now
          @begun_at = nil
        end

        # It was this one's turn, and the answer did not come, or not all of it: the server may have heard it.
        def tried! = @attempts += 1

        def again? = @request.idempotent? && @attempts < MOST_ATTEMPTS && (@begun_at.nil? || @listener.restart)

        def inspect = "#<#{self.class} #{@number} #{@request.inspect}>"
      end
    end
  end
end
