# frozen_string_literal: true

require_relative "../address"

module Hikyaku
  module HTTP
    class Cache
      # What is known no more after a request that may have changed something: RFC 9111, section 4.4.
      module Invalidation
        SAFE = %w[GET HEAD OPTIONS TRACE].freeze
        LOCATIONS = %w[location content-location].freeze
        MOST_LOCATIONS = 4
        private_constant :SAFE, :LOCATIONS, :MOST_LOCATIONS

        class << self
          def urls(method:, url:, status:, headers:)
            return [] if SAFE.include?(method) || !status.between?(200, 399)
            named = headers.select { |field| LOCATIONS.include?(field.first) }.first(MOST_LOCATIONS)
            [url, *named.filter_map { |_, reference| same_origin(url, reference) }]
          end

          private

          def same_origin(url, reference)
            base = Address.parse(url)
            address = Address.parse(reference.dup.force_encoding(Encoding::UTF_8).scrub, base: base)
            address.url if address.origin == base.origin
          rescue InvalidURL
            nil
          end
        end
      end
    end
  end
end
