# frozen_string_literal: true

require_relative "../../support/hop_by_hop"

module Hikyaku
  module HTTP
    class Cache
      # The header fields that are kept, and those that a 304 changes: RFC 9111, sections 3.1 and 3.2.
      module Fields
        # Of the connection, or of the proxy that it leads to.
        NOT_STORED = [*Support::HopByHop::FIELDS, "proxy-authenticate", "proxy-authentication-info", "proxy-authorization"].to_h { |name| [name, true] }.freeze
        # RFC 9110, section 7.6.1: no connection option may name what is meant for all who receive.
        FOR_ALL = %w[age cache-control content-encoding content-language content-length content-location content-range content-type
          date etag expires last-modified vary].freeze
        # They describe the body that is kept, as it was received.
        OF_THE_BODY = %w[content-encoding content-length content-range].freeze
        private_constant :NOT_STORED, :FOR_ALL, :OF_THE_BODY

        module_function

        def values(headers, name) = headers.filter_map { |each, value| value if each == name }

        def single(headers, name)
          found = values(headers, name)
          found.first if found.uniq.size == 1
        end

        def end_to_end(headers)
          pairs = headers.map { |name, value| [name.b, value.b] }
          named = Support::HopByHop.named(values(pairs, "connection")).to_h { |name| [name, true] }.except(*FOR_ALL)
          pairs.reject { |name, _| NOT_STORED[name] || named[name] }
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
