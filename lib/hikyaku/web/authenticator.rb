# frozen_string_literal: true

require_relative "../error"
require_relative "authorization"
require_relative "problem"

module Hikyaku
  class Web
    # Finds out who sends a request and turns failures into the answers that the specification asks for.
    #
    # Mercure draft-08, sections "Presenting the Access Token" and "Error Responses".
    class Authenticator
      def initialize(hub, authorization, origins, config, logger: nil)
        @hub = hub
        @authorization = authorization
        @origins = origins
        @cookie_name = config.cookie_name
        @legacy = config.legacy
        @anonymous = config.anonymous
        @logger = logger
      end

      def publisher(request)
        token, source = token_of(request, query: false)
        missing!(request) unless token
        if source == :cookie && !@origins.publish_allowed?(request.env)
          raise Problem.new(400, "with a cookie, Origin or Referer must name an origin that may publish", code: "invalid_request")
        end
        access(token, :publisher)
      end

      def subscriber(request, anonymous: @anonymous)
        return if anonymous && !@authorization.subscriber_configured?
        token, = token_of(request, query: true)
        return access(token, :subscriber) if token
        missing!(request) unless anonymous
      end

      def invalid!(role, error)
        @logger&.info { "refused a #{role}'s token: #{error.message}" }
        raise Problem.new(401, "the access token is not valid", code: "invalid_token")
      end

      def forbidden!(detail)
        raise Problem.new(403, detail, code: "insufficient_scope")
      end

      private

      # 0.x allows the token in the query component, for subscribing only.
      def token_of(request, query:)
        legacy = @legacy && (query || :no_query)
        Authorization.token_of(request.env, cookie_name: @cookie_name, legacy: legacy)
      end

      def access(token, role)
        access = @authorization.access(token, role)
        raise InvalidToken, "tokens of this subject that are so old are revoked" if @hub.revoked?(access.subject, access.issued_at)
        access
      rescue InvalidToken => error
        invalid!(role, error)
      end

      # A token in the query component would be passed over in silence.
      def missing!(request)
        old = !@legacy && request.query.any? { |name, _| name == "authorization" }
        raise Problem.new(401, "an access token is needed#{"; the query parameter authorization is of Mercure 0.x and counts only with --legacy" if old}")
      end
    end
  end
end
