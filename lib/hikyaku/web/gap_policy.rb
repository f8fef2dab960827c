# frozen_string_literal: true

require_relative "../hub/matcher"

module Hikyaku
  class Web
    # What happens to a reader that the history has passed, by topic: told and moved on (`gap`), or closed (`close`).
    class GapPolicy
      def initialize(policies, hub_url)
        @hub_url = hub_url
        @policies = policies.map { |policy, pattern| [policy, Hub::Matcher.build(type: "urlpattern", pattern: pattern, base: hub_url)] }
        @topics = Hub::Topics.new(hub_url: hub_url, max_bytes: 65_536)
      end

      def call(matcher)
        topic = @topics[matcher.pattern]
        found = @policies.find { |_, pattern| pattern.match?(topic) || pattern.pattern == matcher.pattern }
        found ? found.first : :gap
      end
    end
  end
end
