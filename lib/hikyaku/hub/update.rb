# frozen_string_literal: true

require_relative "../error"
require_relative "topic"

module Hikyaku
  class Hub
    # One thing that was published: immutable, validated, not yet encoded.
    #
    # Mercure draft-08, section "Publication". Whether a topic lies in the hub's reserved namespace depends
    # on the hub's URL and is checked by Hub#publish.
    class Update
      # The event type of what the hub itself says.
      RESERVED_TYPE = "mercure"
      # Digits that a `retry` may have: more than a century of milliseconds.
      RETRY_DIGITS = 12
      private_constant :RETRY_DIGITS

      # @return [Array<String>] the canonical topic, then alternates
      attr_reader :topics
      # @return [String] UTF-8
      attr_reader :data
      # @return [String, nil] the event id that the publisher chose
      attr_reader :id
      # @return [String, nil] the event type
      attr_reader :type
      # @return [Integer, nil] milliseconds that a client should wait before it reconnects
      attr_reader :retry_after

      # @param topics [String, Array<String>] the canonical topic, then alternates; at least one
      # @param data [String] UTF-8
      # @param private [Boolean] only for readers whose token grants one of the topics
      # @param id [String, nil] the event id; the hub makes one when nil or empty
      # @param type [String, nil] the event type
      # @param retry_after [Integer, String, nil] milliseconds; a String must be ASCII digits
      # @param max_topic_bytes [Integer] how long a topic may be
      # @raise [InvalidTopic] names the topic and what is wrong with it
      # @raise [InvalidUpdate] names the field and what is wrong with it
      # @raise [LimitExceeded] a topic is longer than `max_topic_bytes`
      def initialize(topics:, data: "", private: false, id: nil, type: nil, retry_after: nil, max_topic_bytes: 4096)
        @topics = Array(topics).map { |topic| valid_topic(topic, max_topic_bytes) }.freeze
        raise InvalidUpdate, "topic is missing: name at least one" if @topics.empty?
        @data = utf8(data, "data")
        @private = private ? true : false
        @id = valid_id(id)
        @type = valid_type(type)
        @retry_after = valid_retry(retry_after)
        freeze
      end

      # @return [Boolean]
      def private? = @private

      private

      def valid_topic(topic, max_bytes)
        topic = utf8(topic, "topic")
        Topic.validate!(topic, max_bytes: max_bytes)
        raise InvalidTopic, "topic \"*\" is reserved: it is the matcher for every topic" if topic == "*"
        topic
      end

      def valid_id(id)
        return if id.nil? || id.empty?
        id = utf8(id, "id")
        raise InvalidUpdate, "id must not start with #: such ids are made by the hub" if id.start_with?("#")
        raise InvalidUpdate, "id must not be \"earliest\": it stands for the oldest event" if id == "earliest"
        raise InvalidUpdate, "id holds a control or format character" unless Topic.valid_text?(id)
        id
      end

      def valid_type(type)
        return if type.nil? || type.empty?
        type = utf8(type, "type")
        raise InvalidUpdate, "type must not be \"mercure\": it marks the hub's own events" if type == RESERVED_TYPE
        raise InvalidUpdate, "type holds a control or format character" unless Topic.valid_text?(type)
        type
      end

      def valid_retry(value)
        return if value.nil?
        digits = value.to_s
        raise InvalidUpdate, "retry must be digits: milliseconds" unless digits.match?(/\A[0-9]+\z/)
        raise InvalidUpdate, "retry is out of range" if digits.sub(/\A0+/, "").size > RETRY_DIGITS
        digits.to_i
      end

      # Strings may come as binary from a socket: what counts is that the bytes are UTF-8.
      def utf8(string, field)
        raise InvalidUpdate, "#{field} must be a string, not #{string.class}" unless string.is_a?(String)
        if string.encoding != Encoding::UTF_8
          string = (string.encoding == Encoding::BINARY) ? string.dup.force_encoding(Encoding::UTF_8) : string.encode(Encoding::UTF_8)
        end
        raise InvalidUpdate, "#{field} is not valid UTF-8" unless string.valid_encoding?
        string.frozen? ? string : string.dup.freeze
      rescue EncodingError
        raise InvalidUpdate, "#{field} is not valid UTF-8"
      end
    end
  end
end
