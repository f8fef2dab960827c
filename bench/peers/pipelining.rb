# frozen_string_literal: true

require_relative "../pipelining/chromium_client"

module Bench
  # Who visits pages over slow links. (F): is given the list of URLs.
  {
    "net-http" => ["Net::HTTP, 1 connection", "net_http", {rates: true}],
    "net-http-2" => ["Net::HTTP, 2 connections", "net_http", {settings: {"connections" => "2"}}],
    "curl-6" => ["curl, 6 connections (F)", "curl", {}],
    "curl-h2" => ["curl, HTTP/2 over TLS (F)", "curl", {settings: {"http2" => "yes"}, secure: true}],
    "httpx" => ["httpx", "httpx", {gems: %w[httpx], rates: true}],
    "excon" => ["Excon, a pipeline", "excon", {gems: %w[excon], rates: true}],
    "hikyaku" => ["Hikyaku", "hikyaku", {knows: true, rates: true}],
    "hikyaku-list" => ["Hikyaku (F)", "hikyaku", {settings: {"start" => "list"}, knows: true}],
    "hikyaku-open" => ["Hikyaku, connections open", "hikyaku", {settings: {"start" => "open"}, knows: true}],
    "hikyaku-new" => ["Hikyaku, origin not known", "hikyaku", {}],
    "heads-450-serial" => ["bare, heads of 450 B, one by one", "raw", {settings: {"head" => "450", "unanswered" => "1"}}],
    "heads-450-all" => ["bare, heads of 450 B, all at once", "raw", {settings: {"head" => "450", "unanswered" => "0"}}],
    "heads-450-16" => ["bare, heads of 450 B, 16 unanswered", "raw", {settings: {"head" => "450", "unanswered" => "16"}}],
    "heads-60-serial" => ["bare, heads of 60 B, one by one", "raw", {settings: {"head" => "60", "unanswered" => "1"}}],
    "heads-60-all" => ["bare, heads of 60 B, all at once", "raw", {settings: {"head" => "60", "unanswered" => "0"}}],
    "heads-60-16" => ["bare, heads of 60 B, 16 unanswered", "raw", {settings: {"head" => "60", "unanswered" => "16"}}]
  }.each { |name, (title, program, more)| Entrants.add PipeliningClient.new(name, title, program, **more) }

  {
    "chromium" => ["Chromium", {}],
    "chromium-h2" => ["Chromium, HTTP/2 over TLS", {secure: true}],
    "chromium-proxy" => ["Chromium through the proxy", {proxy: :origin}],
    "chromium-proxy-open" => ["Chromium through the proxy, connections open", {proxy: :open}],
    "chromium-proxy-new" => ["Chromium through the proxy, origin not known", {proxy: :nothing}]
  }.each { |name, (title, more)| Entrants.add ChromiumClient.new(name, title, **more) }
end
