# frozen_string_literal: true

require "time"
require_relative "../web/problem"

module Hikyaku
  class Server
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
  end
end
