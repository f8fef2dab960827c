# frozen_string_literal: true

require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
      # Over HTTP/1.1 a browser opens six connections to a host, over all tabs: the seventh stream waits for ever.
      class Http2 < Check
        about "more than six streams a browser"

        SIX = "a browser has six connections to a host, over all its tabs"
        private_constant :SIX

        private

        def perform
          return plain unless place.tls?
          client.connect(alpn: %w[h2 http/1.1]) do |connection|
            return ok("HTTP/2 is offered") if connection.tls.alpn_protocol == "h2"
            warning("HTTP/2 is not offered, and over HTTP/1.1 #{SIX}", :http2)
          end
        end

        def plain
          return ok("plain HTTP on this machine, over which #{SIX}: well for trying out") if place.local?
          warning("this is plain HTTP, over which #{SIX}; browsers speak HTTP/2 with TLS only", :tls)
        end
      end
    end
  end
end
