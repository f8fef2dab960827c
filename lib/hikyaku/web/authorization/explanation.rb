# frozen_string_literal: true

require_relative "../../error"
require_relative "verification"

module Hikyaku
  class Web
    class Authorization
      # What the hub thinks of a token, for people: every check in order, not only the first that fails.
      module Explanation
        NAMES = Verification::CHECKS.keys.to_h { |check| [check, check.to_s.delete_prefix("check_")] }.freeze

        class << self
          def of(verification, role)
            checks = Verification::CHECKS.keys.map { |check| outcome(verification, check) }
            {
              valid: checks.all? { |check| check[:ok] }, role: role, legacy: verification.legacy || false,
              checks: checks, header: verification.header, claims: verification.claims,
              permits: permits(verification.details || [])
            }
          end

          private

          def outcome(verification, check)
            name = NAMES.fetch(check)
            return {check: name, ok: nil, message: "Not checked: an earlier check failed."} unless verification.ready?(check)
            {check: name, ok: true, message: verification.public_send(check)}
          rescue InvalidToken => error
            {check: name, ok: false, message: sentence(error)}
          end

          # The person asking has the token: here the cause may be told, which holds a pattern.
          def sentence(error)
            message = error.cause.is_a?(Hikyaku::Error) ? "#{error.message}: #{error.cause.message}" : error.message
            message = "#{message[0].upcase}#{message[1..]}"
            message.end_with?(".") ? message : "#{message}."
          end

          def permits(details)
            {
              publish: details.select(&:publish).flat_map { |detail| detail.matchers.map { |one| pattern(one) } },
              subscribe: details.select(&:subscribe).flat_map do |detail|
                detail.matchers.map { |one| pattern(one).merge(detail.payload ? {payload: detail.payload} : {}) }
              end
            }
          end

          def pattern(matcher) = {type: matcher.type, pattern: matcher.pattern}
        end

        private_constant :NAMES
      end
    end
  end
end
