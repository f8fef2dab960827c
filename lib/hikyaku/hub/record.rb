# frozen_string_literal: true

module Hikyaku
  class Hub
    # An update as the log keeps it: the event's bytes, and what is needed to choose its readers.
    class Record
      # Whether it is private, how many topics there are, bytes of the id; then bytes of each topic, all as text, the id, the event.
      HEAD = "CnN"
      HEAD_BYTES = 7
      LENGTH = "N*"
      LENGTH_BYTES = 4
      private_constant :HEAD, :HEAD_BYTES, :LENGTH, :LENGTH_BYTES

      # @return [String] the event, frozen, binary
      attr_reader :frame
      # @return [String] the event id
      attr_reader :id

      # @param packed [String] see #head, and behind it the frame; binary
      # @param table [Topics] of the hub
      # @return [Record]
      def self.unpack(packed, table)
        private, count, id_bytes = packed.unpack(HEAD)
        lengths = packed.unpack("#{LENGTH[0]}#{count}", offset: HEAD_BYTES)
        at = HEAD_BYTES + count * LENGTH_BYTES
        topics = lengths.map { |length| packed.byteslice(at, length).force_encoding(Encoding::UTF_8).tap { at += length } }
        id = packed.byteslice(at, id_bytes).force_encoding(Encoding::UTF_8).freeze
        frame = packed.byteslice(at + id_bytes, packed.bytesize).freeze
        new(frame: frame, topics: topics, id: id, private: private == 1, table: table)
      end

      # @param topics [Array<Topic>, Array<String>]
      # @param table [Topics, nil] where the topics are known by these strings
      def initialize(frame:, topics:, id:, private:, table: nil)
        @frame = frame
        @topics = topics
        @table = table
        @id = id
        @private = private
      end

      # @return [Array<Topic>] none: it is for all, whatever they subscribe to
      def topics
        if @table
          @topics = @topics.map { |topic| @table[topic] }
          @table = nil
        end
        @topics
      end

      # @return [String] what the log keeps beside the frame, binary
      def head
        values = topics.map(&:value)
        head = [private? ? 1 : 0, values.size, @id.bytesize].pack(HEAD) << values.map(&:bytesize).pack(LENGTH)
        values.each { |value| head << value.b }
        head << @id.b
      end

      # @return [Boolean] only for readers whose grant covers one of the topics
      def private? = @private

      # @param matcher [Matcher]
      # @return [Boolean] the matcher selects one of the topics
      def matched_by?(matcher) = topics.empty? || topics.any? { |topic| matcher.match?(topic) }
    end
  end
end
