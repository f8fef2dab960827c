# frozen_string_literal: true

require_relative "fields"

module Hikyaku
  module HTTP
    class Cache
      # Asking whether what is stored is still right, and understanding the answer: RFC 9111, section 4.3.
      module Validation
        MAX_BYTES = 4096 # of the tags that are sent
        private_constant :MAX_BYTES

        module_function

        # The one that matches the request, and each other of the URL with a strong tag: the answer may be one of these, too. Beside
        # a tag a server does not look at a date (RFC 9110, section 13.1.3), so that what has only a date is asked about alone.
        def asked(entries, own, inquiry)
          own = nil unless own&.validators?
          return [own] if own && own.etag.nil?
          others = entries.reverse.select { |entry| !entry.equal?(own) && entry.strong? && entry.validators? && entry.variance.meant_for?(inquiry) }
          bytes = 0
          [*own, *others].take_while { |entry| (bytes += entry.etag.bytesize + 2) <= MAX_BYTES }
        end

        def fields(asked, own)
          tags = asked.filter_map(&:etag).uniq
          since = own.last_modified if own && asked.include?(own)
          pairs = {"if-none-match" => (tags.join(", ") if tags.any?), "if-modified-since" => since}.compact
          pairs.map { |name, value| [name, value.dup.freeze].freeze }.freeze
        end

        # Section 4.3.4. One of the same strength before one that is not.
        def meant(stored, headers)
          tag = Fields.single(headers, "etag")&.b
          alike = tag ? stored.asked.select { |entry| same?(entry.etag, tag) } : []
          return alike.max_by { |entry| [(entry.etag == tag) ? 1 : 0, entry.freshness.date, entry.received_at] } if alike.any?
          return stored.asked.first if stored.asked.size == 1
          stored.entry if tag.nil? && stored.entry.variance.matches?(stored.inquiry)
        end

        def agreeing?(entry, headers)
          tag = Fields.single(headers, "etag")
          tag.nil? || entry.etag.nil? || same?(entry.etag, tag.b)
        end

        # Section 4.3.5.
        def unchanged?(entry, headers)
          same_length?(entry, headers) &&
            %w[etag last-modified].all? { |name| alike?(Fields.single(entry.headers, name), Fields.single(headers, name)) }
        end

        # The weak comparison: RFC 9110, section 8.8.3.2.
        def same?(tag, other) = !tag.nil? && tag.delete_prefix("W/") == other.delete_prefix("W/")
        private_class_method :same?

        def alike?(stored, received) = stored.nil? || received.nil? || stored == received.b
        private_class_method :alike?

        # A length says nothing of a body whose coding is another, or was undone.
        def same_length?(entry, headers)
          length = Fields.single(headers, "content-length") or return true
          coding = Fields.single(headers, "content-encoding")
          return true unless coding&.b == Fields.single(entry.headers, "content-encoding")
          known = Fields.single(entry.headers, "content-length") || (entry.body.bytesize.to_s unless coding)
          alike?(known, length)
        end
        private_class_method :same_length?
      end
    end
  end
end
