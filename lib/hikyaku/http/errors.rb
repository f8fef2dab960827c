# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  module HTTP
    # Something that is no absolute http or https URL, or beyond the limits. The message shows it without its user information.
    class InvalidURL < ArgumentError
      include Error
    end

    # A request that did not get its answer. The message says which, where, and why.
    class RequestFailed < StandardError
      include Error

      # @return [String, nil] without user information
      attr_reader :url

      # @param message [String]
      # @param url [String, nil]
      def initialize(message, url: nil)
        @url = url
        super(message)
      end

      # @return [RequestFailed] whose cause is what is being rescued
      # @api private
      def self.caused(message, **more)
        raise new(message, **more)
      rescue self => error
        error
      end
    end

    # No connection came about: no address for the name, nobody there, or no agreement about TLS.
    class ConnectFailed < RequestFailed
    end

    # Something took longer than it may.
    class TimedOut < RequestFailed
      # @return [Symbol] :resolve, :connect, :handshake, :write, :first_byte, :head, :read or :total
      attr_reader :phase

      # @param message [String]
      # @param phase [Symbol]
      # @param url [String, nil]
      def initialize(message, phase:, url: nil)
        @phase = phase
        super(message, url: url)
      end
    end

    # A body that is read could not be, or not to its end: what was raised is the cause.
    class BodyFailed < RequestFailed
    end

    # The connection broke off before the answer was whole, and the request is not repeated, or was once.
    class ConnectionLost < RequestFailed
    end

    # What came is no answer, or certainly none to this request, or its body is not what it was to be read as.
    class BadResponse < RequestFailed
    end

    # An answer that is larger than its limit.
    class ResponseTooLarge < RequestFailed
    end

    # More redirects than are followed, or one that leads to where none is.
    class BadRedirect < RequestFailed
    end

    # An answer whose status is 400 or above, where the caller wants none such: see {Response#raise_for_status}.
    class BadStatus < RequestFailed
      # @return [Response] of an answer that is taken piece by piece, without its body
      attr_reader :response

      # @param response [Response]
      def initialize(response)
        @response = response
        super("the answer to #{response.url} has the status #{response.status}", url: response.url)
      end

      # @return [Integer] 400 to 999
      def status = @response.status
    end

    # The caller did not want the answer any more, or the client was closed.
    class Canceled < RequestFailed
    end
  end
end
