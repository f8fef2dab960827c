# frozen_string_literal: true

require "active_support/log_subscriber"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # One line at level debug for each request of {HTTP::Client}.
    class ClientLogSubscriber < ActiveSupport::LogSubscriber
      def request(event)
        debug do
          verb, url, status, error, seconds = event.payload.values_at(:method, :url, :status, :error, :seconds)
          "  #{color("Hikyaku", CYAN, bold: true)} #{verb} #{url} #{error || status} (#{(seconds.to_f * 1e3).round(1)}ms)"
        end
      end
      subscribe_log_level :request, :debug
    end
  end
end
