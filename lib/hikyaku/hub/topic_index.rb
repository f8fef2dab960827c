# frozen_string_literal: true

require_relative "prefix_table"
require_relative "topic_survey"

module Hikyaku
  class Hub
    # Finds the feeds whose matcher selects a topic without looking at the others: exact matchers by hash,
    # URL patterns by their fixed origin and leading path, URI Templates by their literal beginning.
    #
    # To add or remove a matcher is O(1). Matchers of different types may have the same anchor (`*` in each type, or a 0.x selector
    # without variables), so a slot holds a list.
    class TopicIndex
      attr_reader :generation

      def initialize
        @generation = 0
        @all = []
        @exact = {}
        @urls = Hash.new { |origins, origin| origins[origin] = PrefixTable.new }
        @texts = PrefixTable.new
      end

      def add(feed)
        feed.indexed = true
        case feed.matcher.anchor
        in [:all] then @all << feed
        in [:exact, string] then (@exact[string] ||= []) << feed
        in [:url, origin, path]
          @urls[origin].add(path || "", feed)
          @generation += 1
        in [:text, prefix]
          @texts.add(prefix, feed)
          @generation += 1
        end
      end

      def remove(feed)
        feed.indexed = false
        case feed.matcher.anchor
        in [:all] then @all.delete(feed)
        in [:exact, string]
          @exact[string].delete(feed)
          @exact.delete(string) if @exact[string].empty?
        in [:url, origin, path]
          @urls[origin].remove(path || "", feed)
          @urls.delete(origin) if @urls[origin].empty?
        in [:text, prefix] then @texts.remove(prefix, feed)
        end
      end

      def each_match(topic, survey = TopicSurvey.new(self, topic), &found)
        @all.each(&found)
        @exact[topic.value]&.each(&found)
        survey.each(&found)
      end

      def candidates(topic)
        found = []
        @texts.each_candidate(topic.value) { |feed| found << feed } unless @texts.empty?
        each_url_candidate(topic.url) { |feed| found << feed } unless @urls.empty? || !topic.url
        found
      end

      def patterns? = !(@texts.empty? && @urls.empty?)

      private

      def each_url_candidate(url, &block)
        by_origin = @urls.fetch(url.origin, nil)
        by_origin&.each_candidate(url.pathname, &block)
        anywhere = @urls.fetch(nil, nil)
        anywhere&.each_candidate(url.pathname, &block)
      end
    end
  end
end
