# frozen_string_literal: true

require_relative "../cache/http_date"

module Hikyaku
  module HTTP
    class Client
      # Whether an answer asks for patience, and for how much of it: RFC 9110, sections 10.2.3 (Retry-After), 15.5.9 and 15.6.4, and RFC 6585, section 4.
      module RetryAfter
        STATUSES = [408, 429, 503].freeze
        SECONDS = /\A\d+\z/
        MOST_DIGITS = 9 # more are longer than anybody waits
        # Where the server does not say for how long: twice as long each time, and clients that were refused together do not come back together.
        FIRST = 0.5 # seconds
        SPREAD = 0.5..1.0
        private_constant :STATUSES, :SECONDS, :MOST_DIGITS, :FIRST, :SPREAD

        class << self
          def possible?(request, status) = STATUSES.include?(status) && request.idempotent?

          def wait(headers, before:, most:, wall:)
            said = said(headers, wall)
            return [FIRST * 2**before * rand(SPREAD), most].min unless said
            said if said <= most
          end

          private

          # A date is that of the server's clock, and so is the field Date beside it.
          def said(headers, wall)
            value = headers.assoc("retry-after")&.last.to_s
            return seconds(value) if value.match?(SECONDS)
            date = Cache::HttpDate.parse(value, now: wall) or return
            [date - (Cache::HttpDate.parse(headers.assoc("date")&.last, now: wall) || wall), 0].max
          end

          def seconds(digits)
            digits = digits.sub(/\A0+/, "")
            (digits.size > MOST_DIGITS) ? Float::INFINITY : digits.to_i
          end
        end
      end
    end
  end
end
