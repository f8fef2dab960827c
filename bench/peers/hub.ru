# frozen_string_literal: true

# The hub beside an ordinary route in one Puma process. The environment has its configuration.

require "json"
require_relative "../../lib/hikyaku"

hub = Hikyaku.start(**JSON.parse(ENV.fetch("BENCH_HUB"), symbolize_names: true))
page = [200, {"content-type" => "text/plain"}, ["an ordinary page\n"]].freeze

run ->(env) { hub.serves?(env["PATH_INFO"]) ? hub.call(env) : page }
