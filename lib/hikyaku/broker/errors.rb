# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  module Broker
    # The engine has as many sessions as it may have.
    class TooManyConnections < LimitExceeded
    end

    # The journal could not be written. The outcome of unacknowledged requests is unknown, and the broker accepts nothing more.
    class StorageFailed < StandardError
      include Error
    end
  end
end
