# frozen_string_literal: true

require_relative "../feed"
require_relative "../subscription"
require_relative "../topic_index"

module Hikyaku
  class Hub
    class RubyEngine
      # One feed for each matcher in use, the index that finds them by topic, and those that have grown since they were served.
      # The twin of hk_hub_publish and of the subscriptions in hk_hub_subscribe.
      class Feeds
        attr_reader :index, :subscription_count

        def initialize(log, budget)
          @log = log
          @budget = budget
          @index = TopicIndex.new
          @feeds = {}
          @grown = []
          @subscription_count = 0
        end

        def [](type, pattern) = @feeds[[type, pattern]]

        def size = @feeds.size

        def survey(topics) = topics.map { |topic| TopicSurvey.new(@index, topic) }

        # Adds a position to the feeds whose matchers select one of the topics.
        def add(position, topics, surveys)
          (surveys || survey(topics)).each { |survey| @index.each_match(survey.topic, survey) { |feed| grow(feed, position) } }
        end

        # The next feed that has grown. One that grows while it is served gets another turn after the others.
        def shift_grown
          feed = @grown.shift or return
          feed.dirty = false
          feed
        end

        def grown? = !@grown.empty?

        # Charges the pattern budget for the matchers that have no feed yet. Call it before `link`.
        def charge(subscriber, matchers) = @budget.charge(without_feed(matchers), subscriber.address)

        # Takes back a charge for feeds that were not made.
        def refund(subscriber, matchers)
          without_feed(matchers).each { |matcher| @budget.refund(matcher, subscriber.address) }
        end

        def link(subscriber, matcher)
          @subscription_count += 1
          feed = @feeds[[matcher.type, matcher.pattern]] ||= Feed.new(matcher, since: @log.head + 1, payer: subscriber.address).tap { |made| @index.add(made) }
          Subscription.new(subscriber, feed).tap { |subscription| feed.link(subscription) }
        end

        def unlink(subscription)
          @subscription_count -= 1
          feed = subscription.feed
          feed.unlink(subscription)
          remove(feed) if feed.subscriptions.empty?
        end

        private

        def grow(feed, position)
          return unless feed.append(position)
          return if feed.dirty
          feed.dirty = true
          @grown << feed
        end

        def without_feed(matchers) = matchers.reject { |matcher| @feeds.key?([matcher.type, matcher.pattern]) }

        def remove(feed)
          @budget.refund(feed.matcher, feed.payer)
          @index.remove(feed)
          @feeds.delete([feed.matcher.type, feed.matcher.pattern])
        end
      end
      private_constant :Feeds
    end
  end
end
