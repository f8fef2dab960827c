# frozen_string_literal: true

require_relative "metrics"

module Hikyaku
  class Server
    # What whoever runs a hub asks it: whether it lives (`/healthz`), whether it takes work (`/readyz`), and with
    # `--metrics` how it does (`/metrics`, for Prometheus); and what it understands at all (`OPTIONS *`). Everything else
    # goes to the application.
    class HealthEndpoints
      TEXT = {"content-type" => "text/plain; charset=utf-8", "cache-control" => "no-store"}.freeze
      METHODS = "GET, HEAD"
      # Of all that is served here (RFC 9110, section 9.3.7).
      ALL_METHODS = "GET, HEAD, POST, QUERY, DELETE, OPTIONS"
      private_constant :TEXT, :METHODS, :ALL_METHODS

      def initialize(app, metrics: nil, ready: -> { true })
        @app = app
        @metrics = metrics
        @ready = ready
      end

      def call(env)
        case env["PATH_INFO"]
        when "/healthz" then read(env) { [200, TEXT, ["ok\n"]] }
        when "/readyz" then read(env) { @ready.call ? [200, TEXT, ["ready\n"]] : [503, TEXT, ["stopping\n"]] }
        when "*" then [204, {"allow" => ALL_METHODS}, []]
        when "/metrics" then @metrics ? read(env) { [200, Metrics::HEADERS, [@metrics.to_s]] } : @app.call(env)
        else @app.call(env)
        end
      end

      private

      def read(env)
        case env["REQUEST_METHOD"]
        when "GET", "HEAD"
          status, headers, body = yield
          [status, headers.merge("content-length" => body.sum(&:bytesize).to_s), (env["REQUEST_METHOD"] == "GET") ? body : []]
        else [405, TEXT.merge("allow" => METHODS), ["only GET and HEAD are understood here\n"]]
        end
      end
    end
  end
end
