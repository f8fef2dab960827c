# frozen_string_literal: true

require_relative "../../error"
require_relative "details"
require_relative "strict_json"

module Hikyaku
  class Web
    class Authorization
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
