# frozen_string_literal: true

# Answers that an application keeps ready, serialised before anybody asks: what is left is to compress them. BENCH_WAY says how, see
# application.rb.

require "active_support"
require "active_support/gzip"
require "json"
require "msgpack"
require "hikyaku"
require "hikyaku/codec/rack/compression"
require_relative "payloads"

TYPES = {"application/json" => ->(object) { JSON.generate(object) }, "application/vnd.msgpack" => ->(object) { object.to_msgpack }}.freeze
READY = Bench::Payloads.names.product(TYPES.to_a).to_h do |name, (type, dump)|
  [["/#{name}", type], dump.call(Bench::Payloads.fetch(name)).b.freeze]
end.freeze

ready = lambda do |env|
  type = env["HTTP_ACCEPT"]
  [200, {"content-type" => type}, [READY.fetch([env["PATH_INFO"], type])]]
end

# As the paper has it: every response anew, by the same method.
compressing = lambda do |env|
  status, headers, body = ready.call(env)
  [status, headers.merge("content-encoding" => "gzip"), [ActiveSupport::Gzip.compress(body.first)]]
end

way = ENV.fetch("BENCH_WAY")
cache_bytes = {"middleware" => 0, "cache" => 8 << 20}[way]
if cache_bytes
  use Hikyaku::Codec::Rack::Compression, cache_bytes: cache_bytes, **JSON.parse(ENV.fetch("BENCH_SETTINGS"), symbolize_names: true)
end
run (way == "application") ? compressing : ready
