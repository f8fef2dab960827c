# frozen_string_literal: true

require_relative "directives"
require_relative "fields"
require_relative "http_date"

module Hikyaku
  module HTTP
    class Cache
      # How old a response is, and how old it may become: RFC 9111, section 4.2. Of s-maxage a private cache knows nothing.
      class Freshness
        # RFC 9110, section 15.1: what may be kept although nobody said how long.
        HEURISTIC = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].freeze
        DIGITS = /\A\d+\z/
        PART = 0.1 # of the time since it was last changed
        LONGEST = 86_400 # seconds
        FOREVER = Directives::FOREVER
        private_constant :DIGITS, :PART, :LONGEST, :FOREVER

        attr_reader :date
        attr_reader :lifetime

        def initialize(status:, headers:, directives:, requested_at:, received_at:, heuristic: false)
          @headers = headers
          @received_at = received_at
          @date = moment("date") || received_at
          @initial_age = [received_at - @date, stated_age + [received_at - requested_at, 0].max].max
          @lifetime = explicit(directives) || (heuristic ? guessed(status, directives) : 0)
          @headers = nil
          freeze
        end

        # A clock that was set back does not make anything younger.
        def age(now) = @initial_age + (now - @received_at).abs

        def fresh_at_first? = @lifetime > @initial_age

        private

        def moment(name) = HttpDate.parse(Fields.single(@headers, name), now: @received_at)

        # Section 5.1: the first of several; what is no number is passed over.
        def stated_age
          text = Fields.values(@headers, "age").first.to_s[/\A[^,]*/].strip
          text.match?(DIGITS) ? [text[0, 100].to_i, FOREVER].min : 0
        end

        def explicit(directives)
          directives.least("max-age") || expiry
        end

        # What is no date, "0" above all, is in the past: section 5.3.
        def expiry
          values = Fields.values(@headers, "expires")
          return if values.empty?
          dates = values.map { |value| HttpDate.parse(value, now: @received_at) }
          dates.all? ? (dates.min - @date).clamp(0, FOREVER) : 0
        end

        # Section 4.2.2.
        def guessed(status, directives)
          return 0 unless HEURISTIC.include?(status) || directives.include?("public")
          changed = moment("last-modified") or return 0
          ((@date - changed) * PART).clamp(0, LONGEST)
        end
      end
    end
  end
end
