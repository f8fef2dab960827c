# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Cache
      # The header fields that are kept, and those that a 304 changes: RFC 9111, sections 3.1 and 3.2.
      module Fields
        # Of the connection, or of the proxy that it leads to.
        HOP_BY_HOP = %w[connection keep-alive proxy-connection te trailer transfer-encoding upgrade
          proxy-authenticate proxy-authentication-info proxy-authorization].freeze
        # RFC 9110, section 7.6.1: no connection option may name what is meant for all who receive.
        FOR_ALL = %w[age cache-control content-encoding content-language content-length content-location content-range content-type
          date etag expires last-modified vary].freeze
        # They describe the body that is kept, as it was received.
        OF_THE_BODY = %w[content-encoding content-length content-range].freeze
        MOST_OPTIONS = 100
        private_constant :HOP_BY_HOP, :FOR_ALL, :OF_THE_BODY, :MOST_OPTIONS

        module_function

        def values(headers, name) = headers.filter_map { |each, value| value if each == name }

        def single(headers, name)
          found = values(headers, name)
          found.first if found.uniq.size == 1
        end

        def end_to_end(headers)
          pairs = headers.map { |name, value| [name.b, value.b] }
          named = values(pairs, "connection").flat_map { |value| value.downcase.split(",") }.first(MOST_OPTIONS).map(&:strip) - FOR_ALL
          pairs.reject { |name, _| HOP_BY_HOP.include?(name) || named.include?(name) }
        end

        def updated(stored, received)
          news = end_to_end(received).reject { |field| OF_THE_BODY.include?(field.first) }
          replaced = news.map(&:first).uniq << "date" << "age" << "set-cookie"
          stored.reject { |field| replaced.include?(field.first) } + news
        end
      end
    end
  end
end
