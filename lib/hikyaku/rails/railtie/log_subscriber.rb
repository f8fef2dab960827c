# frozen_string_literal: true

require "active_support/log_subscriber"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # One line at level debug for each notification.
    class LogSubscriber < ActiveSupport::LogSubscriber
      def publish(event)
        debug do
          update = event.payload
          "  #{color("Hikyaku", CYAN, bold: true)} published #{update[:bytes]} bytes#{", private," if update[:private]} to " \
            "#{update[:topics].join(", ")} as #{update[:id] || "nothing: #{update[:exception]&.first}"} (#{event.duration.round(1)}ms)"
        end
      end
      subscribe_log_level :publish, :debug

      def disconnect(event)
        debug { "  #{color("Hikyaku", CYAN, bold: true)} closed #{event.payload[:count]} streams of #{event.payload[:subject]} (#{event.duration.round(1)}ms)" }
      end
      subscribe_log_level :disconnect, :debug

      def streams(event)
        debug do
          granted, refused, subject = event.payload.values_at(:granted, :refused, :subject)
          refusals = refused.map { |reason, count| ", #{count} #{reason}" }.join
          "  #{color("Hikyaku", CYAN, bold: true)} #{granted} streams granted to #{subject}#{refusals} (#{event.duration.round(1)}ms)"
        end
      end
      subscribe_log_level :streams, :debug

      def request(event)
        debug { "  #{color("Hikyaku", CYAN, bold: true)} #{event.payload.values_at(:method, :path, :status).join(" ")} (#{event.duration.round(1)}ms)" }
      end
      subscribe_log_level :request, :debug
    end
  end
end
