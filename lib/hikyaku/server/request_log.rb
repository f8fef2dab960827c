# frozen_string_literal: true

require_relative "../support/clock"
require_relative "../web/change"

module Hikyaku
  class Server
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
