# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      # This machine gives the proxy no more descriptors, or no memory for connections.
      module Shortage
        KINDS = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM].freeze
        TEXT = "this machine lets the proxy open nothing more at the moment: try again soon; if it happens often, allow it more open files (ulimit -n)"

        def self.of?(error) = [error, error.cause].any? { |one| KINDS.any? { |kind| one.is_a?(kind) } }
      end
    end
  end
end
