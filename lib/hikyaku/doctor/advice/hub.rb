# frozen_string_literal: true

module Hikyaku
  class Doctor
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
    end
  end
end
