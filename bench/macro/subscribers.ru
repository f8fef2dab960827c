# frozen_string_literal: true

# An application with an ordinary route, and the hub beside it in the same Puma process.

require_relative "../../lib/hikyaku"

config = Hikyaku::Config.new(
  listen: ENV.fetch("BENCH_LISTEN"), anonymous: true, issuer: ENV.fetch("BENCH_ISSUER"), publisher_key: ENV.fetch("BENCH_KEY")
)
hub = Hikyaku::Web.new(config)
page = [200, {"content-type" => "text/plain"}, ["an ordinary page\n"]].freeze

run ->(env) { env["PATH_INFO"].start_with?(config.path) ? hub.call(env) : page }
