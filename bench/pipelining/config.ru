# frozen_string_literal: true

# The pages of bench/pipelining in Puma.

require "rack/files"

run Rack::Files.new(ENV.fetch("BENCH_ROOT"), {"cache-control" => "max-age=3600", "vary" => "Accept-Encoding"})
