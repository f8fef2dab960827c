# frozen_string_literal: true

module Hikyaku
  class Hub
    # An update as the log keeps it: the event's bytes, and what is needed to choose its readers.
    class Record
      # What a record costs beside its bytes: the objects that hold it (measured: about 400 bytes with one topic).
      OVERHEAD = 400
      private_constant :OVERHEAD

      # @return [String] the event, frozen, binary
      attr_reader :frame
      # @return [Array<Topic>]
      attr_reader :topics
      # @return [String] the event id
      attr_reader :id
      # @return [Integer] bytes that it costs in memory
      attr_reader :bytesize

      def initialize(frame:, topics:, id:, private:)
        @frame = frame
        @topics = topics
        @id = id
        @private = private
        @bytesize = frame.bytesize + id.bytesize + OVERHEAD + topics.sum { |topic| topic.value.bytesize }
      end

      # @return [Boolean] only for readers whose grant covers one of the topics
      def private? = @private

      # @param matcher [Matcher]
      # @return [Boolean] the matcher selects one of the topics
      def matched_by?(matcher) = @topics.any? { |topic| matcher.match?(topic) }
    end
  end
end
