# frozen_string_literal: true

require_relative "frames"
require_relative "shape"
require_relative "type"

module Hikyaku
  module Broker
    module Wire
      # Takes apart the frames that either side may say: 16 bytes, and nothing but an `id`.
      module OfEither
        include Shape

        private

        def ping(size, id)
          exactly(16, size, Type::PING, id)
          Frames::Ping.new(id)
        end

        def receipt(size, id)
          exactly(16, size, Type::ACK, id)
          Frames::Receipt.new(id)
        end
      end
    end
  end
end
