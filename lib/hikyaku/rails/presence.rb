# frozen_string_literal: true

require "json"
require_relative "../error"
require_relative "../hub/subscription_document"
require_relative "../hub/topics"
require_relative "presence/settings"
require_relative "turbo"

module Hikyaku
  # Who is on a page: `config.hikyaku.presence = true` in a Rails application whose Turbo Streams go through the hub.
  #
  # A page with `hikyaku_presence_tag(stream)` subscribes to a topic that nothing is published to, with a token that says who
  # it is (its payload), and to the hub's events about the subscriptions of that topic. Whoever has such a subscription is there:
  #
  #     <hikyaku-presence> ── Turbo::Door ──► a token: this topic, its subscriptions, payload {id: …, name: …}
  #            │                                     │
  #            │ Window: who is here?                ▼ a stream of the hub's
  #            └──────────────────────►   subscription of user 7 begins … ends
  #
  # A user is who has the same `id` in the payload: however many pages, browsers and machines that are. Who is allowed to see
  # a page of a stream is not thereby allowed to see who else does: that is a name that is signed for it.
  #
  # Mercure draft-08, sections "Active Subscriptions" and "Payloads".
  module Presence
    PREFIX = "/hikyaku/presence"
    # What names are signed for, so that those of streams are none of these, and the other way round.
    PURPOSE = "presence"
    TYPE = "exact"
    private_constant :TYPE

    # It is not known who is here.
    class Unknown < StandardError
      include Error
    end

    # What SubscriptionDocument asks of a matcher.
    Described = Struct.new(:type, :pattern)
    private_constant :Described

    @settings = Settings.new

    class << self
      # @return [Settings] of the application
      # @api private
      attr_accessor :settings
      # @return [#call, nil] gives the documents of a topic's subscriptions
      # @api private
      attr_accessor :source

      # Who is on a page of a stream now. Who leaves is gone at once; pages wait a while before they believe it.
      #
      # @param streamables [Array] what the stream is named after, as for hikyaku_presence_tag
      # @return [Array<Hash{String => Object}>] their payloads, each user once
      # @raise [Unknown] the hub does not say
      # @raise [ConfigError] there is no presence
      def here(*streamables)
        subscriptions(name_of(streamables)).map(&:last).uniq { |payload| payload["id"].to_s }
      end

      # @param streamables [Array]
      # @return [String] the name of the stream, as turbo-rails has it
      # @raise [ArgumentError] all streamables are blank
      # @api private
      def name_of(streamables)
        raise ArgumentError, "streamables can't be blank" unless streamables.any?(&:present?)
        (@namer ||= Object.new.extend(::Turbo::Streams::StreamName)).send(:stream_name_from, streamables)
      end

      # @param stream_name [String]
      # @return [String] the topic to which everybody who is here subscribes
      # @api private
      def topic(stream_name) = "#{PREFIX}/#{Turbo.topic(stream_name).rpartition("/").last}"

      # @param stream_name [String]
      # @param hub_url [String]
      # @return [String] the URL pattern of the hub's events about that
      # @api private
      def pattern(stream_name, hub_url) = "#{collection(stream_name, Hub::Topics.new(hub_url: hub_url).hub_path)}/:subscriber"

      # @param stream_name [String]
      # @param hub_path [String]
      # @return [String] the path of the hub's list of them
      # @api private
      def collection(stream_name, hub_path) = Hub::SubscriptionDocument.new(hub_path).collection(Described.new(TYPE, topic(stream_name)))

      # Those of somebody: without an id in the payload nobody knows of whom a subscription is, and anybody may have it.
      #
      # @param stream_name [String]
      # @return [Array<Array(String, Hash)>] subscribers, and their payloads
      # @raise [Unknown]
      # @api private
      def subscriptions(stream_name)
        raise ConfigError, "nobody knows who is here: set config.hikyaku.presence = true" unless settings.on? && source
        source.call(stream_name).filter_map do |document|
          subscriber, payload = document.values_at("subscriber", "payload")
          [subscriber, payload] if payload.is_a?(Hash) && !payload["id"].nil?
        end
      end
    end
  end
end
