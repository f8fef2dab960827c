# frozen_string_literal: true

require "ipaddr"
require "uri"

module Hikyaku
  class Web
    class DeveloperPage
      # Who may use what only the page may use: the page itself, and programs that are no browser.
      #
      # A browser says where a request comes from (Origin, Sec-Fetch-Site), so another site is refused. A site whose
      # name was pointed at this machine (DNS rebinding) is "the same origin" to the browser, so a browser must also
      # have come by an address, by localhost, or by a name that this hub was given.
      class Caller
        def self.host_of(url)
          URI.parse(url.to_s).host&.delete_prefix("[")&.delete_suffix("]")&.downcase
        rescue URI::Error
          nil
        end

        def initialize(hosts:)
          @hosts = hosts.map(&:downcase).freeze
        end

        def refusal(env)
          origin = env["HTTP_ORIGIN"]
          site = env["HTTP_SEC_FETCH_SITE"]
          return unless origin || site
          return "only the hub's own page may ask this, and the request comes from another site" unless own?(origin, site, env)

          host = Caller.host_of("http://#{env["HTTP_HOST"]}")
          return if host && (@hosts.include?(host) || local?(host) || address?(host))

          "the hub does not know the host name #{env["HTTP_HOST"].to_s[0, 100].inspect}: open the page by address, or start " \
            "the hub with the name in --resource-identifier"
        end

        private

        def own?(origin, site, env)
          return false if site && !%w[same-origin none].include?(site)

          # The scheme is not compared: behind a proxy that ends TLS the hub sees http.
          origin.nil? || origin.sub(%r{\Ahttps?://}, "").downcase == env["HTTP_HOST"].to_s.downcase
        end

        def local?(host) = host == "localhost" || host.end_with?(".localhost")

        def address?(host)
          IPAddr.new(host)
          true
        rescue IPAddr::Error
          false
        end
      end
      private_constant :Caller
    end
  end
end
