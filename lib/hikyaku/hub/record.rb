# frozen_string_literal: true

module Hikyaku
  class Hub
    # An entry of the log: the event's bytes, and what selects its subscribers.
    class Record
      # The packed record: whether it is private, number of topics, bytes of the id; bytes of each topic; the topics, the id, the event.
      HEAD = "CnN"
      HEAD_BYTES = 7
      LENGTH = "N*"
      LENGTH_BYTES = 4
      private_constant :HEAD, :HEAD_BYTES, :LENGTH, :LENGTH_BYTES

      attr_reader :frame, :id

      def self.unpack(packed, table)
        private, count, id_bytes = packed.unpack(HEAD)
        lengths = packed.unpack("#{LENGTH[0]}#{count}", offset: HEAD_BYTES)
        at = HEAD_BYTES + count * LENGTH_BYTES
        topics = lengths.map { |length| packed.byteslice(at, length).force_encoding(Encoding::UTF_8).tap { at += length } }
        id = packed.byteslice(at, id_bytes).force_encoding(Encoding::UTF_8).freeze
        frame = packed.byteslice(at + id_bytes, packed.bytesize).freeze
        new(frame: frame, topics: topics, id: id, private: private == 1, table: table)
      end

      def initialize(frame:, topics:, id:, private:, table: nil)
        @frame = frame
        @topics = topics
        @table = table
        @id = id
        @private = private
      end

      def topics
        if @table
          @topics = @topics.map { |topic| @table[topic] }
          @table = nil
        end
        @topics
      end

      def head
        values = topics.map(&:value)
        head = [private? ? 1 : 0, values.size, @id.bytesize].pack(HEAD) << values.map(&:bytesize).pack(LENGTH)
        values.each { |value| head << value.b }
        head << @id.b
      end

      def private? = @private

      def matched_by?(matcher) = topics.empty? || topics.any? { |topic| matcher.match?(topic) }
    end
  end
end
