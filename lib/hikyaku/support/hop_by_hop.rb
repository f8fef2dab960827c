# frozen_string_literal: true

module Hikyaku
  module Support
    # The header fields of one connection, which no intermediary passes on: RFC 9110, section 7.6.1.
    module HopByHop
      # Trailer belongs to the framing, which each connection has of its own.
      FIELDS = %w[connection keep-alive proxy-connection te trailer transfer-encoding upgrade].freeze

      # Names in lower case, from the values of Connection.
      def self.named(values) = values.flat_map { |value| value.downcase.split(",") }.map(&:strip)
    end
  end
end
