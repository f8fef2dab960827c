# frozen_string_literal: true

require_relative "problem"
require_relative "../hub/replay_filter"

module Hikyaku
  class Web
    # `POST {hub path}/streams/{capability}`: gives a stream that lasts other matchers, another token, or both. Not part of the
    # Mercure protocol; docs/live-streams.md has it all.
    #
    # Who knows the capability and has a token may do with the stream what a subscribe with that token might ask for. What is
    # sent is the whole, as of a subscribe: the parameters say which matchers there are from now on.
    class Change
      ROOT = "/streams/"
      # Until some of what is on its way has arrived, or some patterns are gone.
      RETRY = {"retry-after" => "1"}.freeze
      CAPABILITY = %r{(?<=#{ROOT})[^/?]+}n
      private_constant :RETRY, :CAPABILITY

      # A path as logs may show it.
      def self.loggable(path) = path.include?(ROOT) ? path.b.sub(CAPABILITY, "…".b).force_encoding(path.encoding) : path

      def initialize(hub, authenticator, reader, config)
        @hub = hub
        @authenticator = authenticator
        @reader = reader
        @max_bytes = config.max_request_bytes
        @root = "#{hub.hub_path}#{ROOT}"
      end

      def call(request)
        grant, cursor = @reader.read(request) { request.form(limit: @max_bytes) }
        answer = @hub.change(request.path.delete_prefix(@root), grant, last_event_id: cursor)
        raise Problem.new(404, "there is no such stream any more: subscribe again") unless answer
        [204, {"cache-control" => "no-store", **@reader.headers(answer)}, []]
      rescue TooManyRewinds => error
        raise Problem.new(429, error.message, reason: "too_many_rewinds", headers: RETRY)
      rescue PatternsTooCostly => error
        raise Problem.new(429, error.message, reason: "patterns_too_costly", headers: RETRY)
      rescue AnotherSubject => error
        @authenticator.forbidden!(error.message)
      rescue InvalidToken => error
        @authenticator.invalid!(:subscriber, error)
      end
    end
  end
end
