# frozen_string_literal: true

module Hikyaku
  module Codec
    module Rack
      class Compression
        # Parts of representations. They are sent without a coding, and a client that has the beginning of a coded one must not put the two together: it
        # asks with If-Range, and gets a part only if what it has is what the part is of.
        #
        # The entity tag says so, since each coding has its own. A date does not: all codings of a resource have the same, which makes it a weak validator
        # (RFC 9110, section 8.8.1), and a weak one is never enough (section 13.1.5). Applications do not know of codings, and some, as Rack::Files, do not
        # look at If-Range.
        #
        # RFC 9110, sections 13.1.5 and 14.2.
        module Ranges
          RANGE = "HTTP_RANGE"
          IF_RANGE = "HTTP_IF_RANGE"
          METHOD = "REQUEST_METHOD"
          GET = "GET"
          # Of what has no coding.
          TAG = /\A[ \t]*"[^"]*(?<!-gzip|-br|-zstd)"[ \t]*\z/n
          PARTS = %r{\Amultipart/byteranges\b}i
          private_constant :RANGE, :IF_RANGE, :METHOD, :GET, :TAG, :PARTS

          class << self
            # With other methods the field means nothing (section 14.2).
            def asked?(env) = env.key?(RANGE) && env[METHOD] == GET

            def doubtful?(env) = env.key?(IF_RANGE) && asked?(env) && !TAG.match?(env[IF_RANGE].b)

            def whole(env) = env.except(RANGE, IF_RANGE)

            def several?(content_type) = PARTS.match?(content_type.to_s)
          end
        end
        private_constant :Ranges
      end
    end
  end
end
