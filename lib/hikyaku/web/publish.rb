# frozen_string_literal: true

require_relative "problem"
require_relative "../hub/grant"
require_relative "../hub/update"
require_relative "../hub/update_limits"

module Hikyaku
  class Web
    # POST to the hub's URL.
    #
    # Mercure draft-08, sections "Publication" and "Publishers".
    class Publish
      IDEMPOTENCY_KEY_BYTES = 255
      HEADERS = {"content-type" => "text/plain; charset=utf-8", "cache-control" => "no-store", **Problem::NOSNIFF}.freeze
      private_constant :IDEMPOTENCY_KEY_BYTES, :HEADERS

      def initialize(hub, authenticator, config)
        @hub = hub
        @authenticator = authenticator
        @config = config
        @limits = Hub::UpdateLimits.of(config)
      end

      def call(request)
        access = @authenticator.publisher(request)
        update = update_of(request.form(limit: @config.max_request_bytes))
        permit(access, update)
        id = @hub.publish(update, idempotency_key: idempotency_key(request, access))
        request.granted { grant_of(access) }
        [200, HEADERS.merge("hikyaku-idempotency" => @hub.memory, "content-length" => id.bytesize.to_s), [id]]
      rescue LimitExceeded => error
        raise Problem.new(413, error.message)
      rescue InvalidTopic, InvalidUpdate => error
        raise Problem.new(400, error.message)
      rescue KeyReused => error
        raise Problem.new(422, error.message)
      end

      private

      def update_of(fields)
        topics = []
        values = {}
        fields.each do |name, value|
          case name
          when "topic" then topics << value
          when "data", "id", "type", "retry", "private" then values[name] ||= value
          end
        end
        check_limits(topics, values)
        Hub::Update.new(topics: topics, data: values["data"] || "", private: values.key?("private"), id: values["id"],
          type: values["type"], retry_after: retry_of(values), max_topic_bytes: @config.max_topic_bytes)
      end

      def check_limits(topics, values)
        raise InvalidUpdate, "topic is missing: name at least one" if topics.empty?
        @limits.check_fields(topics, *values.values_at("id", "type"))
      end

      # A field without a value says nothing, as with id and type.
      def retry_of(values) = (values["retry"] == "") ? nil : values["retry"]

      # The whole update or none of it: every topic must be granted.
      def permit(access, update)
        topics = update.topics.map { |topic| @hub.topics[topic] }
        @hub.refuse_reserved(topics)
        return if access.publish?(topics)
        raise Problem.new(403, "the token does not grant publishing to every topic of the update", code: "insufficient_scope")
      end

      def grant_of(access)
        Hub::Grant.new(publishes: access.publish_matchers, expires_at: access.expires_at, subject: access.subject,
          issuer: access.issuer, issued_at: access.issued_at, basis: access.basis)
      end

      # The keys are remembered in this process. Each answer names its memory; a client that repeats a request in doubt sends the
      # name along, and is told when the memory that could have recognised it is gone.
      def remember!(request)
        named = request.header("HTTP_HIKYAKU_IDEMPOTENCY")
        return if named.nil? || named == @hub.memory
        raise Problem.new(412, "the hub was restarted since, so it cannot tell whether this was published before")
      end

      def idempotency_key(request, access)
        key = request.header("HTTP_IDEMPOTENCY_KEY") or return
        raise Problem.new(400, "Idempotency-Key must have 1 to #{IDEMPOTENCY_KEY_BYTES} bytes") if key.empty? || key.bytesize > IDEMPOTENCY_KEY_BYTES
        remember!(request)
        [access.issuer, access.subject, key]
      end
    end
  end
end
