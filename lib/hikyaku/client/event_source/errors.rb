# frozen_string_literal: true

require_relative "../../error"
require_relative "../publisher/retries"

module Hikyaku
  class EventSource
    # The server will not send this stream: connecting again would give the same. Also what `on_error` is told of
    # answers after which it connects again.
    class Refused < StandardError
      include Error

      attr_reader :status
      attr_reader :retry_after

      def self.of(response, url)
        status = Integer(response.code, 10)
        new("#{url} answered #{status} in place of an event stream", status: status,
          retry_after: Publisher::Retries.seconds(response["retry-after"]))
      end

      def initialize(message, status: nil, retry_after: nil)
        super(message)
        @status = status
        @retry_after = retry_after
      end

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
