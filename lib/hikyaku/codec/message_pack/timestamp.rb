# frozen_string_literal: true

require_relative "../format"

module Hikyaku
  module Codec
    class MessagePack < Format
      # The one extension type that is written and read: a moment, of 4, 8 or 12 bytes.
      #
      # The specification of MessagePack, "Timestamp extension type".
      module Timestamp
        LESS_THAN_A_SECOND = 1_000_000_000
        SECONDS_BITS = 34
        SECONDS = (-2**63..2**63 - 1)
        private_constant :LESS_THAN_A_SECOND, :SECONDS_BITS, :SECONDS

        class << self
          def bytes(time)
            seconds = time.to_i
            nanoseconds = time.nsec
            if (seconds >> SECONDS_BITS).zero?
              both = (nanoseconds << SECONDS_BITS) | seconds
              return (both < 1 << 32) ? [both].pack("N") : [both].pack("Q>")
            end
            raise RangeError, "the year #{time.year}" unless SECONDS.cover?(seconds)
            [nanoseconds, seconds].pack("Nq>")
          end

          def time(bytes)
            seconds, nanoseconds = parts(bytes)
            ::Time.at(seconds, nanoseconds, :nsec).utc if seconds && nanoseconds < LESS_THAN_A_SECOND
          end

          private

          def parts(bytes)
            case bytes.bytesize
            when 4 then [bytes.unpack1("N"), 0]
            when 8 then bytes.unpack1("Q>").then { |both| [both & ((1 << SECONDS_BITS) - 1), both >> SECONDS_BITS] }
            when 12 then bytes.unpack("Nq>").reverse
            end
          end
        end
      end
    end
  end
end
