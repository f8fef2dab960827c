# frozen_string_literal: true

require_relative "freshness"

module Hikyaku
  module HTTP
    class Cache
      # What a private cache may keep: RFC 9111, section 3; and what is worth it.
      module Storing
        # A part, and an answer that is none without what is stored.
        NEVER = [206, 304].freeze
        # RFC 9111, section 5.2.2.3: the status codes that ask nothing of a cache that it does not do.
        UNDERSTOOD = [*Freshness::HEURISTIC, 302, 303, 307, 400, 401, 403, 500, 502, 503, 504].freeze
        # These say nothing of the resource, but of the request or of the server.
        TRANSIENT = [206, 304, 408, 412, 416, 425, 429, *500..599].freeze
        private_constant :NEVER, :UNDERSTOOD, :TRANSIENT

        module_function

        def allowed?(entry, inquiry)
          return false if NEVER.include?(entry.status) || !entry.status.between?(200, 999) || entry.variance.nil?
          return false if inquiry.directives.include?("no-store") || (inquiry.conditional? && entry.status != 200)
          permitted?(entry) && cacheable?(entry) && worthwhile?(entry)
        end

        def superseding?(status, inquiry) = !inquiry.conditional? && !inquiry.directives.include?("no-store") && !TRANSIENT.include?(status)

        def permitted?(entry)
          directives = entry.directives
          return UNDERSTOOD.include?(entry.status) if directives.include?("must-understand")
          !directives.include?("no-store")
        end
        private_class_method :permitted?

        def cacheable?(entry)
          directives = entry.directives
          Freshness::HEURISTIC.include?(entry.status) || %w[max-age public private].any? { |name| directives.include?(name) } ||
            entry.headers.any? { |name, _| name == "expires" }
        end
        private_class_method :cacheable?

        # What is stale when it comes, and cannot be asked about, is never of use.
        def worthwhile?(entry) = entry.validators? || entry.freshness.fresh_at_first? || entry.directives.include?("stale-if-error")
        private_class_method :worthwhile?
      end
    end
  end
end
