# frozen_string_literal: true

require_relative "subscription_parameters"
require_relative "grant_cache"
require_relative "patterns"
require_relative "problem"
require_relative "../hub/grant"
require_relative "../hub/matcher"

module Hikyaku
  class Web
    # What somebody asks for who subscribes, or changes a stream: which matchers, from which event on, as whom; and the grant
    # that comes of it.
    #
    # Mercure draft-08, sections "Subscription", "Subscribers" and
    # "Reconnection, State Reconciliation, and Event Sourcing".
    class SubscriptionReader
      # Types of matchers by the parameter that asks for one.
      TYPES = Hub::Matcher::PARAMETERS.slice(*Hub::Matcher::TYPES).flat_map { |type, names| names.map { |name| [name, type] } }.to_h.freeze
      KNOWN = [TYPES.keys[0..-2].join(", "), TYPES.keys.last].join(" or ").freeze
      LEGACY_PARAMETERS = Hub::Matcher::PARAMETERS.fetch(Hub::Matcher::LEGACY_TYPE)
      RESERVED = "match"
      NONE = {}.freeze
      # Names under which the last event id is sent, and those of 0.x clients.
      CURSORS = %w[last_event_id].freeze
      LEGACY_CURSORS = [*CURSORS, "lastEventID", "Last-Event-ID"].freeze
      # Of a grant's matchers, and of what its token permits, which nothing else may keep any more.
      BYTES = ->(grant, access) { grant.matchers.sum(&:bytes) + (access ? access.bytes : 0) }
      private_constant :BYTES, :TYPES, :KNOWN, :LEGACY_PARAMETERS, :RESERVED, :NONE, :CURSORS, :LEGACY_CURSORS

      def initialize(hub, authenticator, config)
        @hub = hub
        @authenticator = authenticator
        @config = config
        @grants = GrantCache.new
        @patterns = Patterns.new(hub, config)
        @reader = SubscriptionParameters::Reader.new { |parameters| asked_for(parameters) }
        @cursors = config.legacy ? LEGACY_CURSORS : CURSORS
      end

      attr_reader :grants

      def read(request, body = nil)
        access = subscriber(request)
        body ||= yield
        asked = body.empty? ? @reader.read(request) : asked_for(request.query, body)
        [grant_for(asked.deciding, access), cursor_of(request, asked)]
      rescue InvalidMatcher, InvalidTopic, LimitExceeded => error
        raise Problem.new(400, error.message)
      end

      # Where the stream begins, for whoever asks.
      def headers(id)
        return NONE unless id
        return {"mercure-last-event-id" => id} unless @config.legacy
        {"mercure-last-event-id" => id, "last-event-id" => id}
      end

      private

      # A client of Mercure 0.x has a token of 0.x, too: to be told that it is not valid would not help it.
      def subscriber(request)
        @authenticator.subscriber(request)
      rescue Problem => problem
        raise if problem.status != 401 || @config.legacy
        deciding = @reader.read(request).deciding
        raise if deciding.empty? || deciding.any? { |name, _| reserved?(name) }
        raise Problem.new(400, missing_matcher(deciding))
      end

      def asked_for(*sources)
        deciding = sources.flatten(1).select { |name, _| reserved?(name) || name == "topic" }
        cursors = sources.flat_map { |parameters| @cursors.filter_map { |name| parameters.assoc(name)&.last } }
        SubscriptionParameters.new(deciding, cursors.find { |value| !value.empty? } || cursors.first)
      end

      def grant_for(deciding, access)
        @grants.fetch(access, deciding, bytes: BYTES) { decide(deciding, access) }
      end

      def decide(parameters, access)
        matchers = matchers_of(parameters, anonymous: access.nil?)
        raise Problem.new(400, missing_matcher(parameters)) if matchers.empty?
        return Hub::Grant.new(matchers: matchers) unless access
        Hub::Grant.new(
          matchers: matchers, reads: access.subscribe_matchers, expires_at: access.expires_at, subject: access.subject, issuer: access.issuer,
          issued_at: access.issued_at, basis: access.basis, payloads: matchers.uniq.map { |matcher| access.payload(@hub.topics[matcher.pattern]) }
        )
      end

      def matchers_of(parameters, anonymous:)
        found = parameters.filter_map do |name, value|
          if reserved?(name)
            type = TYPES[name] or raise InvalidMatcher, "#{printable(name)} is not a matcher this hub knows: use #{KNOWN}"
            [type, value]
          elsif @config.legacy && LEGACY_PARAMETERS.include?(name)
            [Hub::Matcher::LEGACY_TYPE, value]
          end
        end
        if found.size > @config.max_matchers
          raise LimitExceeded, "there are #{found.size} matchers, more than the #{@config.max_matchers} that are allowed"
        end
        @patterns.matchers(found.uniq, anonymous: anonymous)
      end

      # ASCII letters in any case; the rest of the name may be anything, even what is not UTF-8.
      def reserved?(name) = TYPES.key?(name) || name.byteslice(0, RESERVED.bytesize).casecmp(RESERVED) == 0

      def missing_matcher(parameters)
        return "no topic is asked for: send match, match_urlpattern or topic" if @config.legacy
        return "no topic is asked for: send match or match_urlpattern" if parameters.empty?
        "the parameter topic is of Mercure 0.x: send match or match_urlpattern, or let the hub be started with --legacy"
      end

      # The header beats the query component, which beats the body. Nil when no cursor was sent at all; a client that sent
      # an empty one is answered like any other.
      def cursor_of(request, asked)
        header = request.header("HTTP_LAST_EVENT_ID")
        cursor = (header.nil? || header.empty?) ? asked.cursor || header : header
        cursor&.dup&.force_encoding(Encoding::UTF_8)
      end

      def printable(name) = name.dup.scrub("?")[0, 64].inspect
    end
  end
end
