# frozen_string_literal: true

require_relative "field"

module Hikyaku
  module HTTP
    class Parser
      # What a request and a response have in common. All strings are binary.
      class Head
        # @return [Array<Array(String, String)>] names, as they were sent, and values, in order
        attr_reader :headers
        # @return [Integer] 0 or 1, of HTTP/1.x
        attr_reader :minor
        # @return [Symbol] how the body ends: :none, :length, :chunked or :until_close
        attr_reader :framing
        # @return [Integer, nil] bytes of the body, where the framing is :length
        attr_reader :content_length

        # @api private
        def initialize(headers, minor)
          @headers = headers
          @minor = minor
        end

        # @param name [String] of a field, in any case
        # @return [String, nil] the value of the first such field
        def [](name) = @headers.find { |each, _| each.casecmp?(name) }&.last

        # @param name [String] of a field, in any case
        # @return [Array<String>] the values of all such fields
        def values(name) = Field.values(@headers, name)

        # @return [Boolean] whether another message may follow on the connection
        def keep_alive? = @keep_alive

        # @return [Boolean] of a request: the client offers to upgrade; of a response: what follows the head is not HTTP any more
        def upgrade? = @upgrade

        private

        def connection = @connection ||= Field.members(@headers, "connection").map(&:downcase)

        # Both say so, and not in HTTP/1.0: RFC 9110, section 7.8.
        def names_upgrade? = @minor == 1 && connection.include?("upgrade") && values("upgrade").any? { |value| !value.empty? }

        def persistent? = !connection.include?("close") && (@minor == 1 || connection.include?("keep-alive"))

        def framed(framing)
          @framing = framing.kind
          @content_length = framing.length
        end
      end
    end
  end
end
