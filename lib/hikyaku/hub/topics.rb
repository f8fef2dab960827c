# frozen_string_literal: true

require_relative "../error"
require_relative "../support/generational_cache"
require_relative "topic"

module Hikyaku
  class Hub
    # The topics that were seen lately, so that one that comes again is not parsed again. A flood of topics that never come again costs
    # each of them its own parsing and nothing else. Any number of threads may ask.
    class Topics
      # A topic with its parsed URL takes so many bytes beside three times its own length (measured: 420 to 800).
      OVERHEAD = 800
      private_constant :OVERHEAD

      attr_reader :hub_url
      attr_reader :hub_path
      attr_reader :base

      def initialize(hub_url:, max_bytes: 4_194_304)
        @hub_url = hub_url.dup.freeze
        @base = URL.parse(@hub_url)
        raise ConfigError, "hub URL #{hub_url.inspect} is not an absolute URL: write it like https://example.com/.well-known/mercure" if @base.nil? || @base.opaque_path?
        @hub_path = @base.pathname
        @comparable_path = Topic.comparable_path(@base)
        @cache = Support::GenerationalCache.new(max_bytes) { |string, _| OVERHEAD + 3 * string.bytesize }
      end

      # The topic for a string. O(1), beside parsing when it is asked for the first time.
      def [](string)
        @cache.fetch(string) { Topic.new(-string, hub: @base, hub_path: @comparable_path) }
      end

      def size = @cache.size

      def inspect = "#<#{self.class} #{@hub_url}>"
    end
  end
end
