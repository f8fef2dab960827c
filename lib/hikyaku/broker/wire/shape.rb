# frozen_string_literal: true

require_relative "code"
require_relative "type"
require_relative "violation"

module Hikyaku
  module Broker
    module Wire
      # What both sides' frames are held to, and how one says what is wrong with them.
      module Shape
        private

        # Ends the reading of this frame.
        def malformed(type, id, what)
          raise Violation.new(Code::MALFORMED, "#{Type::NAMES[type]} #{what}", id: id)
        end

        def exactly(bytes, size, type, id)
          malformed(type, id, "has #{bytes} bytes, not #{size}") unless size == bytes
        end

        def at_least(bytes, size, type, id)
          malformed(type, id, "has #{bytes} bytes at least, not #{size}") if size < bytes
        end

        def zero(value, type, id)
          malformed(type, id, "has something where there is to be 0") unless value.zero?
        end

        def flags_within(known, flags, type, id)
          malformed(type, id, "has flags that are not known: #{flags}") if flags.anybits?(~known)
        end

        def no_subscription(subscription, type, id)
          malformed(type, id, "has no subscription, and says #{subscription}") unless subscription.zero?
        end

        def too_long(type, id) = malformed(type, id, "is shorter than its fields say")
      end
    end
  end
end
