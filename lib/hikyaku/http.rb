# frozen_string_literal: true

require_relative "http/parser"

module Hikyaku
  # HTTP/1 by itself, without sockets: what clients, proxies and servers are made of.
  module HTTP
    class << self
      attr_reader :instrumenter

      def instrumenter=(instrumenter)
        @instrumenter = checked_instrumenter(instrumenter)
      end

      # @api private
      def checked_instrumenter(object)
        return object if object.nil? || object.respond_to?(:instrument)
        raise ArgumentError, "the instrumenter is a #{object.class}; it has to have the method instrument(name, payload)"
      end
    end
  end
end
