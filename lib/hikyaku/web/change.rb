# frozen_string_literal: true

require "json"
require_relative "problem"
require_relative "../hub/replay_filter"
require_relative "request"

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

    # `DELETE {hub path}/subscribers/{subject}`: closes a subject's streams. Not part of the Mercure protocol.
    #
    # It needs a publisher's token that grants `publish` on that path as a topic (nobody can publish there otherwise: it
    # lies in the reserved namespace), or on `*`. With `?revoke=1` the subject's older tokens are refused from now on.
    class Disconnect
      def initialize(hub, authenticator, &disconnect)
        @hub = hub
        @authenticator = authenticator
        @disconnect = disconnect
        @root = "#{hub.hub_path}/subscribers/"
      end

      def call(request)
        access = @authenticator.publisher(request)
        path = request.path
        @authenticator.forbidden!("the token does not grant publishing to #{path}") unless access.publish?([@hub.topics[path]])
        subject = URLEncodedForm.text(path.delete_prefix(@root))
        raise Problem.new(400, "the subject is missing, or not valid UTF-8 without NUL") if subject.nil? || subject.empty?
        count = @disconnect.call(subject: subject, revoke: request.query.any? { |name, value| name == "revoke" && value != "0" })
        body = JSON.generate(subject: subject, disconnected: count)
        [200, {"content-type" => "application/json", "content-length" => body.bytesize.to_s, "cache-control" => "no-store"}, [body]]
      end
    end
  end
end
