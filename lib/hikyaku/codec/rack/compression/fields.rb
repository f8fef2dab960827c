# frozen_string_literal: true

module Hikyaku
  module Codec
    module Rack
      class Compression
        # What header fields say about compressing, and what compressing does to them. Fields are never changed in place: applications keep them.
        module Fields
          VARY = "vary"
          ACCEPT_ENCODING = "Accept-Encoding"
          # Those that tell of other bytes than are sent: lengths, digests (RFC 9530), and ranges, which would be those of another representation.
          UNTRUE = %w[content-length content-md5 content-digest repr-digest digest accept-ranges].freeze
          # What a 304 does not have.
          OF_CONTENT = [*UNTRUE, "content-type", "content-encoding", "content-language"].freeze
          NO_TRANSFORM = /(?:\A|[\s,])no-transform(?:[\s,]|\z)/i
          NO_STORE = /(?:\A|[\s,])no-store(?:[\s,]|\z)/i
          MOST_DIGITS = 18
          private_constant :VARY, :ACCEPT_ENCODING, :UNTRUE, :OF_CONTENT, :NO_TRANSFORM, :NO_STORE, :MOST_DIGITS

          class << self
            def varying(headers)
              names = value(headers, VARY).to_s.split(",").map(&:strip).reject(&:empty?)
              return headers if names.any? { |name| name == "*" || name.casecmp?(ACCEPT_ENCODING) }
              headers.merge(VARY => [*names, ACCEPT_ENCODING].join(", "))
            end

            def encoded(headers, name) = headers.except(*UNTRUE).merge!("content-encoding" => name)

            def unmodified(headers) = headers.except(*OF_CONTENT)

            def fixed?(headers)
              coding = value(headers, "content-encoding")
              return true if coding && !["", "identity"].include?(coding.strip.downcase)
              headers.key?("transfer-encoding") || transformation_refused?(value(headers, "cache-control"))
            end

            def transformation_refused?(directives) = NO_TRANSFORM.match?(directives.to_s.b)

            def partial?(status, headers) = status == 206 || headers.key?("content-range")

            def not_to_be_stored?(headers) = NO_STORE.match?(value(headers, "cache-control").to_s.b)

            def length(headers)
              length = headers["content-length"].to_s
              length.to_i if length.match?(/\A[0-9]{1,#{MOST_DIGITS}}\z/o)
            end

            private

            # Several fields of a name may stand in an Array.
            def value(headers, name)
              value = headers[name]
              value.is_a?(Array) ? value.join(", ") : value
            end
          end
        end
        private_constant :Fields
      end
    end
  end
end
