# frozen_string_literal: true

require_relative "broker/engine"
require_relative "broker/errors"
require_relative "broker/auth_request"
require_relative "broker/level"
require_relative "broker/permission"
require_relative "broker/wire"

module Hikyaku
  # Queues, messages and leases: what was sent is kept until somebody has said that it is done with. docs/protocol.md is
  # how a client and the broker speak.
  module Broker
  end
end
