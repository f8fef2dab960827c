# frozen_string_literal: true

require_relative "../error"
require_relative "../publisher/retries"

module Hikyaku
  class EventSource
    # The server will not send this stream: connecting again would give the same. Also what `on_error` is told of
    # answers after which it connects again.
    class Refused < StandardError
      include Error

      # @return [Integer, nil] the HTTP status; nil when there was none
      attr_reader :status
      # @return [Float, nil] seconds after which the server asks to be tried again
      attr_reader :retry_after

      # @param response [Net::HTTPResponse]
      # @param url [#to_s]
      # @return [Refused]
      def self.of(response, url)
        status = Integer(response.code, 10)
        new("#{url} answered #{status} in place of an event stream", status: status,
          retry_after: Publisher::Retries.seconds(response["retry-after"]))
      end

      # @param message [String]
      # @param status [Integer, nil]
      # @param retry_after [Float, nil] seconds
      def initialize(message, status: nil, retry_after: nil)
        super(message)
        @status = status
        @retry_after = retry_after
      end

      # @return [Boolean] whether the same request may be answered otherwise a little later
      def transient? = !@status.nil? && (@status == 429 || @status.between?(500, 599))
    end

    # Two threads read one EventSource.
    class AlreadyRead < ThreadError
      include Error
    end

    # What came is not what the answer's Content-Type or Content-Encoding says. It is told to `on_error`, and the stream asked for again.
    class Malformed < StandardError
      include Error
    end

    # A line or an event is larger than allowed.
    class EventTooLarge < LimitExceeded
    end
  end
end
