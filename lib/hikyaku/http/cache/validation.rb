# frozen_string_literal: true

require_relative "../address"
require_relative "header_fields"

module Hikyaku
  module HTTP
    class Cache
      # The requests that validate stored responses, and the answers to them: RFC 9111, section 4.3.
      module Validation
        MAX_BYTES = 4096 # of the tags in one request
        private_constant :MAX_BYTES

        module_function

        # The entry that matches the request, and the other ones of the URL with a strong tag, because the answer may name any of them. A server that gets a tag
        # ignores the date (RFC 9110, section 13.1.3), so that an entry with only a date is validated alone.
        def candidates(entries, match, request)
          match = nil unless match&.validators?
          return [match] if match && match.etag.nil?
          others = entries.reverse.select { |entry| !entry.equal?(match) && entry.strong? && entry.validators? && entry.vary.same_identity?(request) }
          bytes = 0
          [*match, *others].take_while { |entry| (bytes += entry.etag.bytesize + 2) <= MAX_BYTES }
        end

        def fields(candidates, match)
          tags = candidates.filter_map(&:etag).uniq
          since = match.last_modified if match && candidates.include?(match)
          pairs = {"if-none-match" => (tags.join(", ") if tags.any?), "if-modified-since" => since}.compact
          pairs.map { |name, value| [name, value.dup.freeze].freeze }.freeze
        end

        # The entry that a 304 validates: section 4.3.4. A tag of the same strength has precedence.
        def validated_entry(stored, headers)
          tag = HeaderFields.single(headers, "etag")&.b
          matches = tag ? stored.candidates.select { |entry| same_tag?(entry.etag, tag) } : []
          return matches.max_by { |entry| [(entry.etag == tag) ? 1 : 0, entry.freshness.date, entry.received_at] } if matches.any?
          return stored.candidates.first if stored.candidates.size == 1
          stored.entry if tag.nil? && stored.entry.vary.matches?(stored.request)
        end

        def agreeing?(entry, headers)
          tag = HeaderFields.single(headers, "etag")
          tag.nil? || entry.etag.nil? || same_tag?(entry.etag, tag.b)
        end

        # Whether the response to a HEAD describes the stored response: section 4.3.5.
        def unchanged?(entry, headers)
          same_length?(entry, headers) &&
            %w[etag last-modified].all? { |name| compatible?(HeaderFields.single(entry.headers, name), HeaderFields.single(headers, name)) }
        end

        # The weak comparison: RFC 9110, section 8.8.3.2.
        def same_tag?(tag, other) = !tag.nil? && tag.delete_prefix("W/") == other.delete_prefix("W/")
        private_class_method :same_tag?

        def compatible?(stored, received) = stored.nil? || received.nil? || stored == received.b
        private_class_method :compatible?

        # A length tells nothing about a body with another content coding, or one that is decoded already.
        def same_length?(entry, headers)
          length = HeaderFields.single(headers, "content-length") or return true
          coding = HeaderFields.single(headers, "content-encoding")
          return true unless coding&.b == HeaderFields.single(entry.headers, "content-encoding")
          known = HeaderFields.single(entry.headers, "content-length") || (entry.body.bytesize.to_s unless coding)
          compatible?(known, length)
        end
        private_class_method :same_length?
      end

      # The URLs whose stored responses an unsafe request invalidates: RFC 9111, section 4.4.
      module Invalidation
        SAFE = %w[GET HEAD OPTIONS TRACE].freeze
        LOCATIONS = %w[location content-location].freeze
        MAX_LOCATIONS = 4
        private_constant :SAFE, :LOCATIONS, :MAX_LOCATIONS

        class << self
          def urls(method:, url:, status:, headers:)
            return [] if SAFE.include?(method) || !status.between?(200, 399)
            named = headers.select { |field| LOCATIONS.include?(field.first) }.first(MAX_LOCATIONS)
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
