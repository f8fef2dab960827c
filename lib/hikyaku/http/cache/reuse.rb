# frozen_string_literal: true

require_relative "directives"

module Hikyaku
  module HTTP
    class Cache
      # Whether what is stored may be used without asking: RFC 9111, section 4, with the wishes of the request, section 5.2.1.
      module Reuse
        FOREVER = Directives::FOREVER
        private_constant :FOREVER

        module_function

        def allowed?(entry, inquiry, now)
          return false if inquiry.no_cache? || entry.directives.unqualified?("no-cache")
          left = entry.left(now)
          return false if too_old?(entry, inquiry, left, now)
          wanted = inquiry.directives.most("min-fresh")
          return false if wanted && left < wanted
          left.positive? || stale_accepted?(entry, inquiry, left)
        end

        # RFC 5861, section 4.
        def allowed_on_error?(entry, now)
          seconds = entry.directives.least("stale-if-error") or return false
          return false if entry.directives.include?("must-revalidate") || entry.directives.unqualified?("no-cache")
          entry.left(now) >= -seconds
        end

        # What is immutable is not asked about again when a page is loaded anew, which sends max-age=0 (RFC 8246, section 2).
        def too_old?(entry, inquiry, left, now)
          max_age = inquiry.directives.least("max-age") or return false
          return false if left.positive? && entry.directives.include?("immutable")
          max_age.zero? || entry.freshness.age(now) > max_age
        end
        private_class_method :too_old?

        def stale_accepted?(entry, inquiry, left)
          seconds = inquiry.directives.least("max-stale", bare: FOREVER) or return false
          !entry.directives.include?("must-revalidate") && -left <= seconds
        end
        private_class_method :stale_accepted?
      end
    end
  end
end
