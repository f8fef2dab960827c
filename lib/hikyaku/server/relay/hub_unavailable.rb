# frozen_string_literal: true

require_relative "../../web/problem"

module Hikyaku
  class Server
    class Relay
      # The hub's process is not there, for a moment: nothing was asked of it.
      class HubUnavailable < Web::Problem
        EVENTS = "text/event-stream"
        # Milliseconds after which a subscriber comes back: not all at once.
        RETRY = (1000..4000)
        private_constant :EVENTS, :RETRY

        def initialize
          super(503, "the hub is away for a moment; try again in a second", headers: {"retry-after" => "1"})
        end

        # An EventSource that is answered 503 gives up for good: it gets a stream, which ends and says when to come back. There is
        # nothing in it to protect from pages of other origins.
        def response_to(env)
          return response unless env["REQUEST_METHOD"] == "GET" && env["HTTP_ACCEPT"].to_s.include?(EVENTS)
          headers = {"content-type" => EVENTS, "cache-control" => "no-store", "x-accel-buffering" => "no", **Web::Problem::NOSNIFF}
          origin = env["HTTP_ORIGIN"]
          headers.update("access-control-allow-origin" => origin, "access-control-allow-credentials" => "true", "vary" => "origin") if origin
          [200, headers, ["retry: #{rand(RETRY)}\n\n"]]
        end
      end
    end
  end
end
