# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  module HTTP
    class Proxy
      # The proxy answers a request itself, with this status. The message of the error says why.
      class StatusError < StandardError
        include Error

        attr_reader :status, :reason

        def initialize(status, message, reason: nil)
          super(message)
          @status = status
          @reason = reason
        end
      end

      # The operating system gives the proxy no more descriptors, or no memory for connections.
      module ResourceExhausted
        ERRORS = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM].freeze
        TEXT = "this machine lets the proxy open nothing more at the moment: try again soon; if it happens often, allow it more open files (ulimit -n)"

        def self.cause_of?(error) = [error, error.cause].any? { |each| ERRORS.any? { |kind| each.is_a?(kind) } }
      end
    end
  end
end
