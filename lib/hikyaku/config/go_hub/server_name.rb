# frozen_string_literal: true

module Hikyaku
  class Config
    class GoHub
      # Caddy's addresses of a site: a list of hosts and ports, of which those without a host, those on port 80 and those that say http:// are
      # served without TLS. Caddy listens on every address of the machine, whatever the host.
      class ServerName
        SITE = %r{\A(?:(?<scheme>https?)://)?(?<host>\[[\h:.]+\]|[^:/\s]*)(?::(?<port>\d{1,5}))?(?<path>/.*)?\z}i
        private_constant :SITE

        def initialize(text, origin)
          @origin = origin
          sites = text.split(/[\s,]+/).reject(&:empty?)
          @plain, @others = sites.partition { |site| port_of(site) }
        end

        def listen = @plain.first && ":#{port_of(@plain.first)}"

        def doubts
          advice = ", and say with HIKYAKU_LISTEN where Hikyaku listens" unless listen
          tls = @others.map { |site| "#{@origin}: #{site[0, 100]} takes HTTPS, which Hikyaku does not serve: put TLS in front of it#{advice}" }
          more = @plain.map { |site| port_of(site) }.uniq.drop(1).map { |port| "#{@origin}: Hikyaku listens on one port, not on #{port} as well" }
          tls + more
        end

        private

        def port_of(site)
          match = SITE.match(site) or return
          port = match[:port]&.to_i
          return if port && port > 65_535
          return port || 80 if match[:scheme]&.casecmp?("http")
          port if match[:scheme].nil? && port && (port == 80 || (match[:host].empty? && port != 443))
        end
      end
      private_constant :ServerName
    end
  end
end
