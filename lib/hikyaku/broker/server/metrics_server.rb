# frozen_string_literal: true

require_relative "../../config/types"
require_relative "../../server/middleware"
require_relative "../../server/http"
require_relative "../../server/listener"

module Hikyaku
  module Broker
    class Server
      # A small HTTP server for the operators of a broker: `/metrics`, `/healthz` and `/readyz`.
      class MetricsServer
        NOT_FOUND = [404, {"content-type" => "text/plain; charset=utf-8"}, ["not found; this server has /metrics, /healthz and /readyz\n"]].freeze
        MAX_REQUEST_BYTES = 1_024
        private_constant :NOT_FOUND, :MAX_REQUEST_BYTES

        attr_reader :address

        def initialize(address, metrics:, ready:, logger:, flag: "--broker-metrics")
          @listener = Hikyaku::Server::Listener.new(address, flag: flag)
          @address = @listener.address
          app = Hikyaku::Server::DateHeader.new(Hikyaku::Server::HealthEndpoints.new(->(_) { NOT_FOUND }, metrics: metrics, ready: ready))
          @http = Hikyaku::Server::Http.new(app, logger: logger, listener: @listener, threads: 1, max_request_bytes: MAX_REQUEST_BYTES)
          @thread = @http.run
        rescue
          @listener&.close
          raise
        end

        def close
          @http.stop(true)
          @listener.close
        end
      end
    end
  end
end
