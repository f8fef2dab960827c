# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  module Broker
    # The engine has as many sessions as it may.
    class TooManyConnections < LimitExceeded
    end

    # The journal could not be written: what was not acknowledged is in doubt, and the broker takes nothing any more.
    class StorageFailed < StandardError
      include Error
    end
  end
end
