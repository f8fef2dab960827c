# frozen_string_literal: true

require_relative "../../error"
require_relative "details"
require_relative "strict_json"

module Hikyaku
  class Web
    class Authorization
      # Reads the claim "mercure" of tokens from before the standard (Mercure 0.x, sections "Publishers", "Subscribers"
      # and "Payload"): arrays of topic selectors, and one payload for every subscription. A token without the claim is
      # valid and grants nothing.
      class LegacyClaim
        # Some authorization servers only issue claims whose names are URLs; they go first.
        NAMES = ["https://mercure.rocks/", "mercure"].freeze

        # What the claim says.
        #
        # @!attribute [r] details
        #   @return [Array<Detail>]
        # @!attribute [r] payload
        #   @return [Object, nil] any JSON value
        Reading = Struct.new(:details, :payload)

        # @param details [Details] builds the matchers, with its limits
        def initialize(details)
          @details = details
        end

        # @param claims [Hash]
        # @return [Reading]
        # @raise [InvalidToken]
        def parse(claims)
          name = NAMES.find { |one| !claims[one].nil? } or return Reading.new([].freeze, nil)
          claim = object(claims[name], name)
          name = "the token's #{name}"
          publish = matchers(claim, "publish", name)
          subscribe = matchers(claim, "subscribe", name)
          details = [detail(publish: publish), detail(subscribe: subscribe)].compact.freeze
          Reading.new(details, claim["payload"])
        end

        private

        # Some libraries can only make claims that are text.
        def object(value, name)
          value = StrictJson.object(value) if value.is_a?(String)
          return value if value.is_a?(Hash)
          raise InvalidToken, "the token's #{name} is neither an object nor the JSON text of one"
        end

        def matchers(claim, key, name)
          return [] if claim[key].nil?
          patterns = @details.array(claim[key], "#{name}.#{key}", empty: true, max: @details.max_topics)
          patterns.each_with_index.map do |pattern, index|
            raise InvalidToken, "#{name}.#{key}[#{index}] is not a string" unless pattern.is_a?(String)
            @details.matcher(pattern, "uri_template", "#{name}.#{key}[#{index}]")
          end.freeze
        end

        def detail(publish: nil, subscribe: nil)
          matchers = publish || subscribe
          return if matchers.empty?
          Detail.new(publish: !publish.nil?, subscribe: !subscribe.nil?, matchers: matchers).freeze
        end

        private_constant :NAMES
      end
    end
  end
end
