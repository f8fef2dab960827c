# frozen_string_literal: true

require_relative "../error"
require_relative "../support/generational_cache"
require_relative "topic"

module Hikyaku
  class Hub
    # A cache of parsed topics. Topics that are used once do not evict those in use. Thread-safe.
    class Topics
      # Bytes of memory that a topic with its parsed URL takes beside three times its own length (measured: 420 to 800).
      OVERHEAD = 800
      private_constant :OVERHEAD

      attr_reader :hub_url, :hub_path, :base

      def initialize(hub_url:, max_bytes: 4_194_304)
        @hub_url = hub_url.dup.freeze
        @base = URL.parse(@hub_url)
        raise ConfigError, "hub URL #{hub_url.inspect} is not an absolute URL: write it like https://example.com/.well-known/mercure" if @base.nil? || @base.opaque_path?
        @hub_path = @base.pathname
        @comparable_path = Topic.comparable_path(@base)
        @cache = Support::GenerationalCache.new(max_bytes) { |string, _| OVERHEAD + 3 * string.bytesize }
      end

      def [](string)
        @cache.fetch(string) { Topic.new(-string, hub: @base, hub_path: @comparable_path) }
      end

      def size = @cache.size

      def inspect = "#<#{self.class} #{@hub_url}>"
    end
  end
end
