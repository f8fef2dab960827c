# frozen_string_literal: true

require_relative "../error"
require_relative "topic"

module Hikyaku
  class Hub
    # The topics that were seen lately, so that one that comes again is not parsed again. Bounded in bytes: what was not
    # asked for while half of the bytes were filled anew is forgotten.
    #
    # There are two generations: a topic is looked for in the young one, then in the old one (and moves back to the young one).
    # When the young one is full it becomes the old one, whose topics go. So a look-up, a hit or a miss, is one or two hash
    # look-ups and never a search for something to evict; a flood of topics that never come again costs each of them
    # its own parsing and nothing else.
    #
    # Any number of threads may ask.
    class Topics
      # A topic with its parsed URL takes so many bytes beside three times its own length (measured: 420 to 800).
      OVERHEAD = 800
      private_constant :OVERHEAD

      # @return [String] the URL that relative topics are resolved against
      attr_reader :hub_url
      # @return [String] its path
      attr_reader :hub_path
      # @return [Url] the same, parsed
      attr_reader :base

      # @param hub_url [String] an absolute URL
      # @param max_bytes [Integer] what the remembered topics may take, estimated
      # @raise [ConfigError] hub_url is no absolute URL with a path
      def initialize(hub_url:, max_bytes: 4_194_304)
        @hub_url = hub_url.dup.freeze
        @base = Url.parse(@hub_url)
        raise ConfigError, "hub URL #{hub_url.inspect} is not an absolute URL: write it like https://example.com/.well-known/mercure" if @base.nil? || @base.opaque_path?
        @hub_path = @base.pathname
        @comparable_path = Topic.comparable_path(@base)
        @max_bytes_of_generation = max_bytes / 2
        @young = {}
        @old = {}
        @bytes = 0
        @mutex = Mutex.new
      end

      # The topic for a string. O(1), beside parsing when it is asked for the first time.
      #
      # @param string [String] valid UTF-8: see Topic.validate!
      # @return [Topic]
      def [](string)
        @mutex.synchronize { @young[string] || remember(@old.delete(string) || topic(string)) }
      end

      # @return [Integer] how many topics are remembered
      def size = @mutex.synchronize { @young.size + @old.size }

      # @return [String]
      def inspect = "#<#{self.class} #{@hub_url}>"

      private

      def topic(string) = Topic.new(-string, hub: @base, hub_path: @comparable_path)

      def remember(topic)
        bytes = OVERHEAD + 3 * topic.value.bytesize
        if @bytes + bytes > @max_bytes_of_generation
          @old = @young
          @young = {}
          @bytes = 0
        end
        @bytes += bytes
        @young[topic.value] = topic
      end
    end
  end
end
