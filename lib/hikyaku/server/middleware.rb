# frozen_string_literal: true

require "time"
require_relative "metrics"
require_relative "../web/problem"
require_relative "../support/clock"
require_relative "../web/change"

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

    # Says in every answer when it was given (RFC 9110, section 6.6.1), unless the application has, and that its type is not to be
    # guessed.
    class DateHeader
      def self.now
        second, text = @latest
        now = Process.clock_gettime(Process::CLOCK_REALTIME, :second)
        return text if second == now
        @latest = [now, Time.at(now).httpdate.freeze].freeze
        @latest.last
      end

      def initialize(app)
        @app = app
      end

      def call(env)
        status, headers, body = @app.call(env)
        headers = {"date" => DateHeader.now, **Web::Problem::NOSNIFF}.update(headers) unless headers.key?("date") && headers.key?("x-content-type-options")
        [status, headers, body]
      end
    end

    # One line for each request, at the level debug: method, path without its query and what it may hold of secrets, status, time
    # until the answer began.
    class RequestLog
      include Support::Clock

      def initialize(app, logger)
        @app = app
        @logger = logger
      end

      def call(env)
        began = now
        response = @app.call(env)
        @logger.debug { "#{env["REQUEST_METHOD"]} #{Web::Change.loggable(env["PATH_INFO"])} #{response[0]} #{((now - began) * 1000).round(1)} ms" }
        response
      end
    end
  end
end
