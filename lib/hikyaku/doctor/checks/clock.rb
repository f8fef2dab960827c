# frozen_string_literal: true

require "time"
require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
      # Whether the hub's clock and this one agree: tokens say until when they are good.
      class Clock < Check
        about "the clocks"

        # Seconds of difference: nobody notices, and tokens of a minute fail.
        SMALL = 5
        LARGE = 60
        private_constant :SMALL, :LARGE

        private

        def perform
          date = date_of(visit.answer)
          return warning("the answer has no Date, so the clocks cannot be compared", :headers) unless date
          # Date is cut to whole seconds, and was written at some moment between question and answer.
          early = date - visit.answer.answered_at
          late = date + 1 - visit.answer.asked_at
          [judge(early, late), *tokens(date)]
        end

        def date_of(answer)
          Time.httpdate(answer["date"].to_s)
        rescue ArgumentError
          nil
        end

        def judge(early, late)
          difference = [early, -late, 0].max
          return ok("they agree", skew: 0.0) if difference.zero?
          skew = (early > 0) ? difference : -difference
          message = "the server's clock is #{Words.long(difference)} #{(skew > 0) ? "ahead of" : "behind"} the one here"
          return ok("#{message}, which does no harm", skew: skew) if difference <= SMALL
          (difference < LARGE) ? warning(message, :clock, skew: skew) : failed(message, :clock, skew: skew)
        end

        # Those that were made elsewhere, by the hub's clock.
        def tokens(date)
          Credentials::ROLES.select { |role| visit.credentials.given?(role) }.filter_map { |role| token(role, visit.credentials.claims(role), date) }.uniq(&:message)
        end

        def token(role, claims, date)
          expires, issued = claims.values_at("exp", "iat").map { |value| value if value.is_a?(Numeric) }
          if expires && expires <= date.to_i then failed("by the server's clock the #{role}'s token has expired #{Words.long(date.to_i - expires)} ago", :token)
          elsif issued && issued > date.to_i + SMALL then warning("by the server's clock the #{role}'s token was issued #{Words.long(issued - date.to_i)} in the future", :clock)
          end
        end
      end
    end
  end
end
