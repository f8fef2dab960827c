# frozen_string_literal: true

# The hub beside an ordinary application, as docs/guides/rack.md mounts it. The environment has its URL and keys.

require "hikyaku"

hub = Hikyaku.start(anonymous: true, resource_identifier: ENV.fetch("HUB_URL"), issuer: ENV.fetch("HUB_ISSUER"),
  publisher_key: ENV.fetch("HUB_KEY"), max_connections_per_address: 100_000, heartbeat: 0)

run ->(env) { hub.serves?(env["PATH_INFO"]) ? hub.call(env) : [200, {"content-type" => "text/plain"}, ["ordinary #{env["PATH_INFO"]}"]] }
