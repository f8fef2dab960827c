# frozen_string_literal: true

require "time"

module Hikyaku
  class Server
    # Says in every answer when it was given, unless the application has.
    #
    # RFC 9110, section 6.6.1.
    class Dated
      # @return [String] the time as HTTP writes it
      def self.now
        second, text = @latest
        now = Process.clock_gettime(Process::CLOCK_REALTIME, :second)
        return text if second == now
        @latest = [now, Time.at(now).httpdate.freeze].freeze
        @latest.last
      end

      # @param app [#call] a Rack application
      def initialize(app)
        @app = app
      end

      # @param env [Hash] a Rack environment
      # @return [Array(Integer, Hash, #each)] a Rack response
      def call(env)
        status, headers, body = @app.call(env)
        [status, headers.key?("date") ? headers : {"date" => Dated.now}.merge(headers), body]
      end
    end
  end
end
