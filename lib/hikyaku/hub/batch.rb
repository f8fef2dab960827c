# frozen_string_literal: true

module Hikyaku
  class Hub
    # The next events of every subscriber of one feed that stands at the same position: gathered once, and shared.
    # The twin of hk_batch.
    class Batch
      attr_reader :bytes, :to, :after, :first, :count

      # Gathers the events of a feed that follow a subscriber's cursor. nil: the feed's index does not reach back that far, or the
      # ring has passed the cursor.
      def self.gather(log, feed, subscriber, max_bytes)
        cursor = subscriber.cursor
        return unless feed.covers?(cursor)
        grant = subscriber.grant
        format = subscriber.format
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
            encoded = format.encode(position, record)
            if bytes.nil?
              bytes = encoded
            else
              break if bytes.bytesize + encoded.bytesize > max_bytes
              bytes = bytes.dup if bytes.frozen?
              bytes << encoded
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

      # Whether it is what a subscriber of the feed, with the batch's format, receives next.
      def covers?(feed, subscriber, oldest)
        cursor = subscriber.cursor
        @newest == feed.newest && @first >= oldest && cursor < @first && cursor >= @after && (@grant.nil? || @grant.equal?(subscriber.grant))
      end

      # Whether it holds nothing private, so that it suits every grant.
      def public? = @grant.nil?

      def more? = @to < @newest
    end
  end
end
