# frozen_string_literal: true

require_relative "../../error"
require_relative "../../hub/matcher"
require_relative "keys"

module Hikyaku
  class Web
    class Authorization
      # One Mercure authorization detail: which actions on which topics.
      #
      # @!attribute [r] publish
      #   @return [Boolean]
      # @!attribute [r] subscribe
      #   @return [Boolean]
      # @!attribute [r] matchers
      #   @return [Array<Hub::Matcher>]
      # @!attribute [r] payload
      #   @return [Hash, nil]
      Detail = Struct.new(:publish, :subscribe, :matchers, :payload, keyword_init: true)

      # Reads the claim authorization_details (RFC 9396; Mercure draft-08, sections "Authorization Details" and "Topic
      # Matcher List"). Details of other types are other hubs' business; one malformed Mercure detail voids the token.
      class Details
        TYPE = "https://mercure.rocks/authorization-detail"
        NAME = "the token's authorization_details"

        def initialize(base:, max_details:, max_topics:, max_pattern_bytes:)
          @base = base
          @max_details = max_details
          @max_topics = max_topics
          @max_pattern_bytes = max_pattern_bytes
        end

        def parse(claims)
          return [] unless claims.key?("authorization_details")
          entries = array(claims["authorization_details"], NAME, empty: true)
          mercure = entries.each_with_index.select { |entry, index| mercure?(entry, index) }
          if mercure.size > @max_details
            raise InvalidToken, "the token has #{mercure.size} Mercure authorization details, at most #{@max_details} are allowed"
          end
          mercure.map { |entry, index| detail(entry, "#{NAME}[#{index}]") }.freeze
        end

        def matcher(pattern, type, where)
          Hub::Matcher.build(type: type, pattern: pattern, base: @base, max_bytes: @max_pattern_bytes)
        rescue InvalidMatcher, LimitExceeded
          # Not the pattern, nor the cause's message: they are the token's content.
          raise InvalidToken, "#{where} is not a valid #{type} matcher of at most #{@max_pattern_bytes} bytes"
        end

        def array(value, where, empty: false, max: nil)
          raise InvalidToken, "#{where} is not an array" unless value.is_a?(Array)
          raise InvalidToken, "#{where} is empty" if value.empty? && !empty
          raise InvalidToken, "#{where} has #{value.size} entries, at most #{max} are allowed" if max && value.size > max
          value
        end

        # A match_type that the hub does not know voids the token even beside the wildcard: it must fail loudly.
        def topic_matcher(topic, where)
          raise InvalidToken, "#{where} is not an object" unless topic.is_a?(Hash)
          type = topic.fetch("match_type", "exact")
          raise InvalidToken, "#{where}.match_type is none of #{Hub::Matcher::TYPES.join(", ")}" unless Hub::Matcher::TYPES.include?(type)
          pattern = topic["match"]
          raise InvalidToken, "#{where}.match is not a string with at least one character" unless pattern.is_a?(String) && !pattern.empty?
          matcher(pattern, type, "#{where}.match")
        end

        attr_reader :max_topics

        private

        def mercure?(entry, index)
          raise InvalidToken, "#{NAME}[#{index}] is not an object" unless entry.is_a?(Hash)
          type = entry["type"]
          return type == TYPE if type.is_a?(String) || !entry.key?("type")
          raise InvalidToken, "#{NAME}[#{index}].type is not a string"
        end

        def detail(entry, where)
          actions = array(entry["actions"], "#{where}.actions")
          raise InvalidToken, "#{where}.actions has an entry that is not a string" unless actions.all?(String)
          topics = array(entry["topics"], "#{where}.topics", max: @max_topics)
          matchers = topics.each_with_index.map { |topic, index| topic_matcher(topic, "#{where}.topics[#{index}]") }
          Detail.new(publish: actions.include?("publish"), subscribe: actions.include?("subscribe"),
            matchers: matchers.freeze, payload: payload(entry, where)).freeze
        end

        def payload(entry, where)
          return unless entry.key?("payload")
          return entry["payload"] if entry["payload"].is_a?(Hash)
          raise InvalidToken, "#{where}.payload is not an object"
        end

        private_constant :TYPE, :NAME
      end

      # Reads the claim "mercure" of tokens from before the standard (Mercure 0.x, sections "Publishers", "Subscribers"
      # and "Payload"): arrays of topic selectors, and one payload for every subscription. A token without the claim is
      # valid and grants nothing. In place of a selector there may be a matcher, as in authorization details, with a payload of
      # its own, as the hub in Go takes it.
      class LegacyClaim
        # Some authorization servers only issue claims whose names are URLs; they go first.
        NAMES = ["https://mercure.rocks/", "mercure"].freeze
        # A match_type that the hub in Go takes for none.
        UNSAID = [nil, ""].freeze

        # What the claim says.
        #
        # @!attribute [r] details
        #   @return [Array<Detail>]
        # @!attribute [r] payload
        #   @return [Object, nil] any JSON value
        Reading = Struct.new(:details, :payload)

        def initialize(details)
          @details = details
        end

        def parse(claims)
          name = NAMES.find { |one| !claims[one].nil? } or return Reading.new([].freeze, nil)
          claim = object(claims[name], name)
          name = "the token's #{name}"
          details = details_of(claim, "publish", name) + details_of(claim, "subscribe", name)
          Reading.new(details.freeze, claim["payload"])
        end

        private

        # Some libraries can only make claims that are text.
        def object(value, name)
          value = StrictJson.object(value) if value.is_a?(String)
          return value if value.is_a?(Hash)
          raise InvalidToken, "the token's #{name} is neither an object nor the JSON text of one"
        end

        def details_of(claim, action, name)
          return [] if claim[action].nil?
          entries = @details.array(claim[action], "#{name}.#{action}", empty: true, max: @details.max_topics)
          entries.each_with_index.map do |entry, index|
            where = "#{name}.#{action}[#{index}]"
            Detail.new(publish: action == "publish", subscribe: action == "subscribe", matchers: [matcher(entry, where)].freeze,
              payload: (entry["payload"] if entry.is_a?(Hash))).freeze
          end
        end

        def matcher(entry, where)
          case entry
          when String then @details.matcher(entry, "uri_template", where)
          when Hash then @details.topic_matcher(UNSAID.include?(entry["match_type"]) ? entry.except("match_type") : entry, where)
          else raise InvalidToken, "#{where} is neither a string nor an object"
          end
        end

        private_constant :NAMES, :UNSAID
      end
    end
  end
end
