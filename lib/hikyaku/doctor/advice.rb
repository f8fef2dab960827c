# frozen_string_literal: true

module Hikyaku
  class Doctor
    # What to change, by what is wrong and by what stands in front of the hub.
    module Advice
      # What is wrong with the hub itself, with the keys and tokens, or with what the doctor was told.
      module Hub
        KEYS = %w[publisher subscriber].to_h { |role|
          [:"#{role}_key", {
            "any" => "the hub and who signs need keys that belong together: the same secret, or the two halves of one pair, and one algorithm",
            "hikyaku serve" => "--#{role}-key KEY, or HIKYAKU_#{role.upcase}_KEY; hikyaku doctor takes the same",
            "rails" => "config.hikyaku.#{role}_key, or hikyaku: {#{role}_key: …} in the credentials; without them, the same secret_key_base"
          }]
        }.freeze
        private_constant :KEYS

        # As Advice has it.
        TABLE = {
          **KEYS,
          issuer: {
            "any" => "the hub and who signs must name the same issuer (iss)",
            "hikyaku serve" => "--issuer ISS, or HIKYAKU_ISSUER; hikyaku doctor takes the same",
            "rails" => "config.hikyaku.issuer = \"ISS\""
          },
          identifier: {
            "any" => "the hub must be told the URL that clients use, and tokens must be made for it (aud)",
            "hikyaku serve" => "--resource-identifier URL, or HIKYAKU_RESOURCE_IDENTIFIER; hikyaku doctor takes the same",
            "rails" => "config.hikyaku.resource_identifier = \"URL\""
          },
          token: {
            "any" => "give --token TOKEN, one that is signed for this hub: with its key, by its issuer (iss), for its URL (aud), in time (exp)",
            "hikyaku serve" => "hikyaku token makes one with the hub's configuration: --publish TOPIC, --subscribe TOPIC",
            "rails" => "the token of config.hikyaku.hub, where one is set; without it the application's keys make tokens"
          },
          grant: {
            "any" => "give --topic TOPIC, one that the token grants, or a --token that grants this topic (authorization_details)"
          },
          forbidden: {
            "any" => "let what is sent to the hub's path through: no access rule and no firewall's rule there",
            "rails" => "config.hosts must have the hub's host; and what ends TLS must say X-Forwarded-Proto: https, else config.assume_ssl = true",
            "nginx" => "no deny and no limit_except in the hub's location",
            "Apache" => "Require all granted on the hub's path",
            "Cloudflare" => "a rule of the firewall (WAF) that skips the hub's path"
          },
          connections: {
            "any" => "let the hub hold more streams; and let it believe the proxy before it, or all clients have that one's address",
            "hikyaku serve" => "--max-connections N, --max-connections-per-address N, --trusted-proxy ADDRESS",
            "rails" => "config.hikyaku.max_connections, max_connections_per_address, trusted_proxies",
            "nginx" => "no limit_req and no limit_conn in the hub's location",
            "Cloudflare" => "no rate limiting rule on the hub's path"
          },
          request: {
            "any" => "pass query and body on unchanged; with --topic TOPIC give one that the hub takes; a hub of Mercure 0.x must learn draft 08"
          },
          unreachable: {
            "any" => "see that the hub runs and listens there (with TLS for https), that the name leads there, and that no firewall is between",
            "hikyaku serve" => "--listen ADDRESS (127.0.0.1:3030 unless set, which is for this machine alone)",
            "rails" => "the application's server must run; the hub is in it, unless config.hikyaku.hub names another"
          },
          broken: {
            "any" => "read the log of what answers, and the hub's: the hub must run, and what stands in front must connect to where it listens",
            "nginx" => "proxy_pass must name the address of the hub; its error.log says why it does not get there"
          },
          place: {
            "any" => "give the hub's own URL, and send that path to the hub",
            "hikyaku serve" => "--path PATH (/.well-known/mercure unless set)",
            "rails" => "config.hikyaku.path (/.well-known/mercure unless set)"
          },
          redirect: {
            "any" => "give the URL to which all that leads in the end, here and to clients; redirect once at most, and to https"
          },
          max_lifetime: {
            "any" => "let streams last longer: each end is a reconnection (an hour unless set)",
            "hikyaku serve" => "--max-lifetime SECONDS",
            "rails" => "config.hikyaku.max_lifetime = SECONDS"
          },
          silence: {
            "any" => "let the hub send heartbeats: they keep what stands between from cutting, and let clients notice a dead connection",
            "hikyaku serve" => "--heartbeat 15",
            "rails" => "config.hikyaku.heartbeat = 15"
          },
          secure_cookie: {
            "any" => "serve the hub over https; or for trying out, where there is none, give the cookie another name",
            "hikyaku serve" => "--cookie-name mercure_access_token",
            "rails" => "config.hikyaku.cookie_name = \"mercure_access_token\""
          },
          development: {
            "any" => "developer mode is for one's own machine: elsewhere the hub needs keys of its own",
            "hikyaku serve" => "no --dev; --publisher-key KEY and --subscriber-key KEY",
            "rails" => "no config.hikyaku.dev; no publisher_key and subscriber_key that others know"
          },
          page: {
            "any" => "give --page URL, a page of the application that anybody gets (200)"
          }
        }.freeze
      end

      # The two ways in which a hub is configured. Both are always said: who looks from outside need not know which it is, and
      # an application may publish to a hub that is a command.
      WAYS = ["hikyaku serve", "rails"].freeze
      # Under "any" stands what is true whatever it is.
      TABLE = {
        **Hub::TABLE,
        buffering: {
          "any" => "whatever stands between must pass each byte on as it comes: no response buffering on the hub's path",
          "nginx" => "proxy_buffering off; in the hub's location, and no proxy_ignore_headers X-Accel-Buffering",
          "Caddy" => "flush_interval -1 in reverse_proxy",
          "Apache" => "ProxyPass … flushpackets=on, and no filter (mod_deflate, mod_substitute) on the hub's path",
          "Thruster" => "version 0.1.15 or newer; older ones hold back what they do not flush",
          "kamal-proxy" => "a version that knows event streams, or in deploy.yml proxy: buffering: responses: false",
          "Cloudflare" => "no response buffering, no rule that rewrites bodies on the hub's path"
        },
        flush: {
          "any" => "the head of an answer must be passed on when it is there, not with the first bytes of the body",
          "Apache" => "ProxyPass … flushpackets=on"
        },
        compression: {
          "any" => "no compression on the hub's path: it collects bytes before it lets them go; Cache-Control: no-transform forbids it",
          "nginx" => "gzip off; (and brotli off;) in the hub's location, or take text/event-stream out of gzip_types",
          "Caddy" => "encode with a matcher that leaves the hub's path out: @other not path /.well-known/mercure*",
          "Apache" => "SetEnvIf Request_URI ^/\\.well-known/mercure no-gzip no-brotli",
          "Thruster" => "GZIP_COMPRESSION_DISABLE_ON_AUTH=true, which leaves out answers with no-store; or GZIP_COMPRESSION_ENABLED=0",
          "Cloudflare" => "it leaves answers with Cache-Control: no-transform alone: see that nothing takes that field away"
        },
        idle: {
          "any" => "what cuts must wait longer than the hub's heartbeat (15 s unless set), or the hub must send it sooner",
          "hikyaku serve" => "--heartbeat SECONDS",
          "rails" => "config.hikyaku.heartbeat = SECONDS",
          "nginx" => "proxy_read_timeout 75s; and send_timeout 75s; in the hub's location",
          "Apache" => "ProxyPass … timeout=75, or ProxyTimeout 75",
          "Cloudflare" => "it waits about 100 s for a byte: keep the heartbeat below"
        },
        lifetime: {
          "any" => "something limits how long an answer may take as a whole: lift that limit on the hub's path",
          "Thruster" => "HTTP_WRITE_TIMEOUT=0: it is 30 s, for a whole answer",
          "Caddy" => "no write timeout in the global servers { timeouts { … } }, no stream_timeout in reverse_proxy",
          "kamal-proxy" => "a deploy ends streams after drain_timeout: clients come back by themselves"
        },
        http2: {
          "any" => "let what ends TLS offer h2 by ALPN",
          "nginx" => "listen 443 ssl http2; (from 1.25.1 on: http2 on;)",
          "Apache" => "a2enmod http2, and Protocols h2 http/1.1",
          "Thruster" => "TLS_DOMAIN: it speaks HTTP/2 where it ends TLS itself",
          "kamal-proxy" => "proxy: ssl: true in deploy.yml: it speaks HTTP/2 where it ends TLS itself",
          "Cloudflare" => "Speed, Protocol: HTTP/2 on"
        },
        tls: {
          "any" => "serve the hub over https: tokens and cookies must not travel readable, and browsers speak HTTP/2 only there"
        },
        certificate: {
          "any" => "renew it, and see that what serves it loads the new one"
        },
        chain: {
          "any" => "serve the certificate with the intermediate ones behind it (fullchain.pem); for an authority of your own give --ca-file FILE",
          "nginx" => "ssl_certificate must name the whole chain",
          "Apache" => "SSLCertificateFile must name the whole chain"
        },
        plain: {
          "any" => "answer plain HTTP with 308 to https, or not at all",
          "nginx" => "server { listen 80; return 308 https://$host$request_uri; }",
          "Caddy" => "it does so unless auto_https is off",
          "Apache" => "Redirect 308 / https://…/",
          "Cloudflare" => "SSL/TLS, Edge Certificates: Always Use HTTPS"
        },
        authorization: {
          "any" => "pass the header Authorization on to the hub, unchanged",
          "nginx" => "no proxy_set_header Authorization, and auth_basic off; in the hub's location",
          "Apache" => "no RequestHeader unset Authorization, no AuthType on the hub's path",
          "Caddy" => "no header_up -Authorization, no basic_auth on the hub's path"
        },
        length: {
          "any" => "let header fields of 17 KB through: the hub takes tokens of 16 KB (max_token_bytes)",
          "nginx" => "large_client_header_buffers 4 32k; in the server of the hub",
          "Apache" => "LimitRequestFieldSize 32768"
        },
        challenge: {
          "any" => "pass the hub's WWW-Authenticate on to the client",
          "nginx" => "no proxy_hide_header WWW-Authenticate"
        },
        cookie: {
          "any" => "pass the header Cookie on to the hub",
          "nginx" => "no proxy_set_header Cookie",
          "Cloudflare" => "no cache rule on the hub's path"
        },
        headers: {
          "any" => "pass the header fields of the hub's answers on unchanged",
          "nginx" => "no proxy_hide_header, expires or add_header Cache-Control in the hub's location"
        },
        cache: {
          "any" => "no cache on the hub's path",
          "nginx" => "proxy_cache off; in the hub's location",
          "Cloudflare" => "a cache rule: bypass for the hub's path"
        },
        last_event_id: {
          "any" => "pass the header Last-Event-ID on to the hub: without it, nobody who comes back gets what was missed",
          "nginx" => "no proxy_set_header Last-Event-ID, no proxy_pass_request_headers off"
        },
        cursor: {
          "any" => "pass the field Mercure-Last-Event-ID of answers on to the client: by it a program sees that something is missing"
        },
        metadata: {
          "any" => "send this path to the hub, too: clients find there what they need to get a token (RFC 9728)",
          "nginx" => "location = /.well-known/oauth-protected-resource/.well-known/mercure { proxy_pass http://hikyaku; … }",
          "Apache" => "ProxyPass /.well-known/oauth-protected-resource/.well-known/mercure http://…",
          "Caddy" => "a second path in the matcher: /.well-known/oauth-protected-resource/.well-known/mercure"
        },
        paths: {
          "any" => "send the hub's path and all that lies below it to the hub, with every method (GET, HEAD, POST, QUERY, DELETE, OPTIONS)",
          "nginx" => "location /.well-known/mercure { … } in place of location =, no limit_except, and proxy_pass without a path",
          "Caddy" => "path /.well-known/mercure /.well-known/mercure/*",
          "Apache" => "ProxyPass /.well-known/mercure http://…/.well-known/mercure, and no Limit"
        },
        query: {
          "any" => "let the method QUERY through; Puma does with supported_http_methods Puma::Const::SUPPORTED_HTTP_METHODS + [\"QUERY\"]"
        },
        cors: {
          "any" => "let the hub allow the origin, and pass its Access-Control-* fields and OPTIONS through",
          "hikyaku serve" => "--cors-origin ORIGIN",
          "rails" => "config.hikyaku.cors_origins = [\"ORIGIN\"]"
        },
        cors_twice: {
          "any" => "let the hub alone answer for CORS: a browser refuses a field that is there twice",
          "nginx" => "no add_header Access-Control-* in the hub's location",
          "Caddy" => "no header Access-Control-* on the hub's path",
          "Apache" => "no Header set Access-Control-* on the hub's path"
        },
        clock: {
          "any" => "set the clocks (timedatectl set-ntp true, chrony): a token that is short-lived is refused where the clock is ahead"
        },
        processes: {
          "any" => "one hub for all: `plugin :hikyaku` in Puma, or `hikyaku serve` on its own with the hub's path sent to it alone",
          "nginx" => "one server in the upstream of the hub's path",
          "kamal-proxy" => "the hub as an accessory or a role on one host, with the hub's path routed to it"
        },
        metrics: {
          "any" => "keep /metrics for yourself: send only the hub's paths to it",
          "nginx" => "no location / that leads to the hub"
        },
        discovery: {
          "any" => "add to the page's answer: Link: <HUB URL>; rel=\"mercure\"",
          "rails" => "hikyaku_discovery in the controller, before the page is rendered"
        }
      }.freeze
      # Of an answer that a hub does not give, or gives for a reason of its own.
      STATUSES = {400 => :request, 403 => :forbidden, 404 => :paths, 405 => :paths, 429 => :connections, 501 => :paths}.freeze
      private_constant :WAYS, :TABLE, :STATUSES

      def self.defect_of(status) = STATUSES.fetch(status) { (status >= 500) ? :broken : :place }

      def self.on(defect, front)
        lines = TABLE.fetch(defect)
        known = lines.except("any")
        # Of something that does not say what it is, what most people have is said beside what is always true.
        names = front&.names.to_a.any? ? front.names : ["nginx"]
        [lines.fetch("any"), *known.slice(*WAYS, *names).map { |name, line| "#{name}: #{line}" }]
      end
    end
  end
end
