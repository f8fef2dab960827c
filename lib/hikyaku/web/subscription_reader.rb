# frozen_string_literal: true

require_relative "problem"
require_relative "../hub/grant"
require_relative "../hub/matcher"
require_relative "../support/generational_cache"
require_relative "../error"

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

    # What parameters ask for, as far as a subscription goes: those that decide, and from which event on. Frozen, and shared by
    # all who send the same query component.
    class SubscriptionParameters
      # Reads query components, and remembers those that came lately: all who look at one page send the same, and to read it
      # again costs more than all else that is done for a subscriber. One that names an event is read and forgotten, since
      # the next names another. Thread-safe.
      class Reader
        # What an entry costs beside its texts.
        OVERHEAD = 600
        COPIES = 3
        private_constant :OVERHEAD, :COPIES

        def initialize(max_bytes: 1_048_576, &read)
          @cache = Support::GenerationalCache.new(max_bytes) { |query, _| OVERHEAD + COPIES * query.bytesize }
          @read = read
        end

        def read(request)
          query = request.query_string
          @cache[query] || @read.call(request.query).tap { |asked| @cache.store(query, asked) unless asked.cursor }
        end

        def size = @cache.size

        def inspect = "#<#{self.class.name}>"
      end

      attr_reader :deciding, :cursor

      def initialize(deciding, cursor)
        @deciding = deciding.each(&:freeze).freeze
        @cursor = cursor
        freeze
      end
    end

    # Decisions that were taken lately, by the values that decided: whoever sends the same ones shares the grant. The
    # values are compared whole; only what was granted is remembered, never a refusal. Whether the token behind it is
    # still good is asked before, each time.
    class GrantCache
      # What an entry costs beside its texts.
      OVERHEAD = 600
      NOTHING = ->(_, _) { 0 }
      private_constant :OVERHEAD, :NOTHING

      def initialize(max_bytes: 4_194_304)
        @cache = Support::GenerationalCache.new(max_bytes) { |_, (_, _, bytes)| bytes }
      end

      def fetch(access, parameters, bytes: NOTHING)
        key = [access.object_id, parameters]
        known, grant = @cache[key]
        return grant if grant && known.equal?(access)
        yield.tap { |made| @cache.store(key, [access, made, OVERHEAD + parameters.sum { |name, value| name.bytesize + value.bytesize } + bytes.call(made, access)]) }
      end

      # Forgets the decisions about a subject.
      def forget(subject)
        @cache.delete_if { |_, grant| grant.subject == subject }
      end

      def size = @cache.size

      def inspect = "#<#{self.class.name}>"
    end

    # Makes the matchers that a request asks for. Compiling one takes time in proportion to its bytes and its instructions, so a
    # request may only have so much compiled; those that somebody uses, or that were compiled lately, are not compiled again.
    # What matching them costs afterwards is limited, too: docs/topic-program.md, section "Cost".
    class Patterns
      # What an entry takes beside its matcher.
      OVERHEAD = 300
      # Readers without a token may have the limits divided by this.
      ANONYMOUS = 4
      private_constant :OVERHEAD, :ANONYMOUS

      def initialize(hub, config, max_bytes: 8_388_608)
        @hub = hub
        @limits = {max_bytes: config.max_pattern_bytes, max_instructions: config.max_pattern_instructions}
        @max_work = config.max_pattern_work
        @max_cost = config.max_pattern_cost
        @cache = Support::GenerationalCache.new(max_bytes) { |_, matcher| OVERHEAD + matcher.bytes }
      end

      def matchers(asked, anonymous:)
        share = anonymous ? ANONYMOUS : 1
        work = cost = 0
        asked.map do |type, pattern|
          matcher = known(type, pattern)
          unless matcher
            check_work(work += pattern.bytesize, @max_work / share, pattern)
            matcher = compile(type, pattern)
            check_work(work += matcher.instructions, @max_work / share, pattern)
          end
          check_cost(cost += matcher.cost, @max_cost / share, pattern)
          matcher
        end
      end

      def inspect = "#<#{self.class.name}>"

      private

      def known(type, pattern)
        return @hub.matcher(type, pattern, **@limits) if type == "exact"
        @cache[[type, pattern]] || @hub.matcher_in_use(type, pattern)
      end

      def compile(type, pattern)
        # A hundred of them take long, and other threads are to have their turn between them.
        Thread.pass
        @cache.store([type, pattern].freeze, @hub.matcher(type, pattern, **@limits))
      end

      def check_work(work, most, pattern)
        return if work <= most
        raise LimitExceeded, "to compile the patterns up to #{Hub::Matcher.shown(pattern)} takes #{work} bytes and instructions, more than the #{most} that are allowed for one request: " \
          "ask for fewer or shorter patterns"
      end

      def check_cost(cost, most, pattern)
        return if cost <= most
        raise LimitExceeded, "the patterns up to #{Hub::Matcher.shown(pattern)} cost #{cost} steps for each byte of a topic, more than the #{most} that are allowed for one reader: " \
          "use fewer or simpler patterns"
      end
    end
  end
end
