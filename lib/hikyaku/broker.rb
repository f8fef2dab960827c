# frozen_string_literal: true

require_relative "broker/engine"
require_relative "broker/errors"
require_relative "broker/auth_request"
require_relative "broker/level"
require_relative "broker/permission"
require_relative "broker/wire"

module Hikyaku
  # Queues, messages and leases: the broker keeps a message until a receiver has acknowledged it. docs/protocol.md is the protocol between a
  # client and the broker.
  module Broker
  end
end
