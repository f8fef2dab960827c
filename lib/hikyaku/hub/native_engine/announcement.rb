# frozen_string_literal: true

require "json"
require "securerandom"
require_relative "../subscription_document"
require_relative "../../support/url"

module Hikyaku
  class Hub
    class NativeEngine
      # The template of a subscription event: the parts before, between and after the subscriber's id, which only the engine
      # knows, and whether the subscription is active.
      #
      # It is made by describing the subscription of a subscriber with a random id, and cutting the description there.
      class Announcement
        Described = Struct.new(:subscriber, :matcher, :payload)
        Placeholder = Struct.new(:id)
        TRUE_SIZE = 4
        # Segments that URL parsing removes; everything else in the topic of a subscription is canonical.
        DOTS = %r{/\.{1,2}/}
        private_constant :Described, :Placeholder, :TRUE_SIZE, :DOTS

        def initialize(topics, documents)
          @topics = topics
          @documents = documents
        end

        def call(matcher, payload)
          id = "urn:uuid:#{SecureRandom.uuid}"
          escaped = id.gsub(":", "%3A")
          described = Described.new(Placeholder.new(id), matcher, payload)
          topic = @documents.topic(described)
          path = topic.match?(DOTS) ? URL.parse(topic, base: @topics.base).pathname : topic
          head, between, begun = pieces(described, true, escaped, id)
          *, ended = pieces(described, false, escaped, id)
          place = begun.each_char.with_index.find { |char, index| char != ended[index] }.last
          [cut(topic, escaped), cut(path, escaped), head, between, begun[0, place], begun[place + TRUE_SIZE..],
            @documents.event_type(described) || ""]
        end

        private

        def pieces(described, active, escaped, id)
          head, rest = JSON.generate(@documents.document(described, active: active)).split(escaped, 2)
          [head, *rest.split(id, 2)]
        end

        def cut(text, ending)
          raise "the address #{text} of a subscription does not end with the subscriber" unless text.end_with?(ending)
          text.delete_suffix(ending)
        end
      end

      private_constant :Announcement
    end
  end
end
