# frozen_string_literal: true

require_relative "prefix_table"

module Hikyaku
  class Hub
    # Finds the feeds whose matcher selects a topic without looking at the others: exact matchers by hash,
    # URL patterns by their fixed origin and leading path, URI Templates by their literal beginning.
    #
    # Adding or removing one matcher touches no other. Matchers of different types may select the very same (`*` in each type, or a
    # 0.x selector without variables), so a place holds as many feeds as there are types.
    class TopicIndex
      def initialize
        @all = []
        @exact = {}
        @urls = Hash.new { |origins, origin| origins[origin] = PrefixTable.new }
        @texts = PrefixTable.new
      end

      # @param feed [Feed]
      # @return [void]
      def add(feed)
        case feed.matcher.anchor
        in [:all] then @all << feed
        in [:exact, string] then (@exact[string] ||= []) << feed
        in [:url, origin, path] then @urls[origin].add(path || "", feed)
        in [:text, prefix] then @texts.add(prefix, feed)
        end
      end

      # @param feed [Feed]
      # @return [void]
      def remove(feed)
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

      # @param topic [Topic]
      # @yieldparam feed [Feed] whose matcher selects the topic
      # @return [void]
      def each_match(topic, &found)
        @all.each(&found)
        @exact[topic.value]&.each(&found)
        unless @texts.empty?
          @texts.each_candidate(topic.value) { |candidate| yield candidate if candidate.matcher.match?(topic) }
        end
        return if @urls.empty? || !(url = topic.url)
        each_url_candidate(url) { |candidate| yield candidate if candidate.matcher.match?(topic) }
      end

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
