# frozen_string_literal: true

require_relative "../../../support/hop_by_hop"

module Hikyaku
  module HTTP
    class Proxy
      module Forwarding
        # The fields of a message, from one hop to the next.
        #
        # RFC 9110, sections 7.6.1 and 7.6.3.
        module Fields
          # What ends here, and what the proxy makes itself.
          OURS = [*Support::HopByHop::FIELDS, "content-length", "http2-settings"].freeze
          PROXY = "proxy-"
          private_constant :OURS, :PROXY

          class << self
            def end_to_end(headers, without: [])
              ended = [*OURS, *without, *named(headers)].to_h { |name| [name, true] }
              headers.reject { |name, _| ended.key?(name.downcase) || name.downcase.start_with?(PROXY) }
            end

            # Whether a proxy of this name has passed it on already.
            def received_by?(headers, name)
              values(headers, "via").any? { |value| value.split(",").any? { |member| member.split[1] == name } }
            end

            def write(headers) = headers.map { |name, value| "#{name}: #{value}\r\n".b }.join.b

            private

            def named(headers) = Support::HopByHop.named(values(headers, "connection"))

            def values(headers, field) = headers.filter_map { |name, value| value if name.casecmp?(field) }
          end
        end
      end
    end
  end
end
