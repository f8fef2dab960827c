# frozen_string_literal: true

module Hikyaku
  class Hub
    # What comes next for every subscriber of one feed whose cursor stands at the same place: the bytes, gathered once.
    class Batch
      # @return [String, nil] nil when nothing of it is for the reader
      attr_reader :bytes
      # @return [Integer] the cursor of whoever has received it
      attr_reader :to
      # @return [Integer] it serves cursors from here on …
      attr_reader :after
      # @return [Integer] … and before here: the position of its first event
      attr_reader :first
      # @return [Integer] how many events it holds
      attr_reader :count

      # Gathers the events of a feed that follow a subscriber's cursor.
      #
      # @return [Batch, nil] nil when the feed alone cannot tell: the cursor is before the feed's index, or the ring has
      #   passed it
      def self.gather(log, feed, subscriber, max_bytes)
        cursor = subscriber.cursor
        return unless feed.covers?(cursor)
        grant = subscriber.grant
        first = feed.next_after(cursor)
        return new(feed, cursor, cursor, nil, 0, cursor, nil) unless first
        return if first < log.first
        restricted = false
        bytes = nil
        count = 0
        to = cursor
        position = first
        while position
          record = log[position]
          restricted = true if record.private?
          if grant.admits?(record)
            if bytes.nil?
              bytes = record.frame
            else
              break if bytes.bytesize + record.frame.bytesize > max_bytes
              bytes = bytes.dup if bytes.frozen?
              bytes << record.frame
            end
            count += 1
          end
          to = position
          position = feed.next_after(position)
        end
        new(feed, feed.last_until(cursor), first, bytes&.freeze, count, to, restricted ? grant : nil)
      end

      def initialize(feed, after, first, bytes, count, to, grant)
        @after = after
        @first = first
        @bytes = bytes
        @count = count
        @to = to
        @newest = feed.newest
        @grant = grant
      end

      # @param oldest [Integer] the oldest position that the log retains
      # @return [Boolean] the batch is what the subscriber receives next
      def serves?(feed, subscriber, oldest)
        cursor = subscriber.cursor
        @newest == feed.newest && @first >= oldest && cursor < @first && cursor >= @after && (@grant.nil? || @grant.equal?(subscriber.grant))
      end

      # @return [Boolean] it holds nothing private
      def for_all? = @grant.nil?

      # @return [Boolean] the feed has more after it
      def more? = @to < @newest
    end
  end
end
