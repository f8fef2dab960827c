# frozen_string_literal: true

require_relative "../scanner/referrer_policy"

module Hikyaku
  module HTTP
    class Proxy
      class Prefetcher
        # What Chromium says when it asks for what is in a page, of the page's own origin: what it said of the page, but for what is of the page alone.
        #
        # Fetch Standard, section "HTTP-network-or-cache fetch"; Referrer Policy, section 8.
        class Saying
          # As long as it is not known what this browser says.
          ACCEPT = {
            image: "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8", style: "text/css,*/*;q=0.1"
          }.freeze
          # RFC 9110, section 7.6.3, asks for Via in what is forwarded. Nobody has sent this: it is the proxy's own request, and shorter so.
          OF_A_PAGE = %w[accept if-match if-modified-since if-none-match if-range if-unmodified-since range referer origin upgrade-insecure-requests via
            sec-fetch-dest sec-fetch-mode sec-fetch-site sec-fetch-user sec-fetch-storage-access].freeze
          # Who reloads a page asks for it anew, and for what is in it as ever.
          RELOAD = ["cache-control", "max-age=0"].freeze
          DESTINATIONS = %i[image style script font].freeze
          CORS = %i[font other].freeze
          # A longer one is cut to the origin.
          LONGEST_REFERER = 4_096
          ORIGIN_ALONE = %w[origin strict-origin].freeze
          private_constant :ACCEPT, :OF_A_PAGE, :RELOAD, :DESTINATIONS, :CORS, :LONGEST_REFERER, :ORIGIN_ALONE

          def initialize(headers, url: nil, policy: nil, accepts: {})
            @accepts = accepts
            @headers = headers.reject { |field| OF_A_PAGE.include?(field.first) || field == RELOAD }
            @fetch_metadata = headers.any? { |field| field.first == "sec-fetch-dest" }
            @url = url
            @origin = url && url[%r{\A\w+://[^/]+}]
            @policy = policy.to_s.downcase.split(",").filter_map { |name| Scanner::ReferrerPolicy.named(name.strip) }.last
          end

          attr_reader :url

          def of(inline)
            cors = inline.crossorigin || inline.module? || CORS.include?(inline.kind)
            referer = referer(inline.referrer_policy)
            [*@headers, ["accept", @accepts[inline.kind] || ACCEPT.fetch(inline.kind, "*/*")], *([["origin", @origin]] if cors && @url), *([["referer", referer]] if referer),
              *(metadata(inline.kind, cors) if @fetch_metadata)]
          end

          private

          # All is of the page's own origin.
          def referer(named)
            policy = named || @policy
            return if @url.nil? || policy == "no-referrer"
            (ORIGIN_ALONE.include?(policy) || @url.bytesize > LONGEST_REFERER) ? "#{@origin}/" : @url
          end

          def metadata(kind, cors)
            [["sec-fetch-site", "same-origin"], ["sec-fetch-mode", cors ? "cors" : "no-cors"], ["sec-fetch-dest", DESTINATIONS.include?(kind) ? kind.name : "empty"]]
          end
        end
      end
    end
  end
end
