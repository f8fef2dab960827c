# frozen_string_literal: true

module Hikyaku
  module Broker
    module Wire
      # The types of frames (docs/protocol.md, section 2).
      module Type
        HELLO = 1
        SEND = 2
        SEND_BATCH = 3
        SUBSCRIBE = 4
        UNSUBSCRIBE = 5
        CREDIT = 6
        FREE = 7
        NACK = 8
        TOUCH = 9
        PING = 10
        DRAIN = 11
        QUERY = 12
        ACK = 32
        ERROR = 33
        PUSH = 34
        REPORT = 35

        NAMES = constants(false).to_h { |name| [const_get(name), name] }.freeze

        OF_CLIENT = [*HELLO..QUERY, ACK].freeze

        OF_BROKER = [PING, DRAIN, *ACK..REPORT].freeze
      end
    end
  end
end
