# frozen_string_literal: true

require_relative "../form/portion"

module Hikyaku
  class Hub
    class RubyEngine
      # What was gathered for one stream that has a form, and is what others receive next: the hot path of these, as Delivery is of
      # those without.
      #
      #     of a group    pieces of epochs, for those who are in step, or where an epoch begins
      #     of a form     events that stand alone, or are not compressed: for all who use the same one matcher, if nothing is private
      module Sharing
        private

        # As `fan_out`, of streams with a form: those that receive what was gathered for one of them. Who is in step with an epoch, or
        # has nothing to be in step with, is seen by a few comparisons, like those before it; the others are looked at closer.
        def fan_out_formed(limit, now)
          subscribers = @feed.subscribers
          newest = @feed.newest
          place = [@place, subscribers.size].min
          left = limit
          portion = within = uncoded = bytes = nil
          in_step = true
          first = after = size = to = count = events = sent = 0
          while place > 0 && left > 0
            subscriber = subscribers[place - 1]
            if subscriber && (cursor = subscriber.cursor) < newest
              break unless subscriber.idle_formed
              unless cursor < first && cursor >= after && (within ? within.equal?(subscriber.epoch) : uncoded.equal?(subscriber.form))
                portion = portion_at_hand(subscriber, newest) or break
                first, after, to = portion.first, portion.after, portion.to
                bytes, count, within = portion.bytes, portion.count, portion.within
                size = bytes.bytesize
                uncoded = subscriber.form.gzip? ? nil : subscriber.form
                in_step = uncoded || within&.equal?(portion.epoch)
              end
              @place = place - 1
              left -= 1
              written = yield subscriber, bytes
              if written == size
                subscriber.receive(portion) unless in_step
                subscriber.cursor = to
                subscriber.active_at = now
                events += count
                sent += size
              else
                subscriber.taken = portion
                wrote(subscriber, written, now: now)
              end
            end
            place -= 1
          end
          @place = place
          @deliveries += events
          @delivered_bytes += sent
          left
        end

        # What was gathered for another, and is what this one receives next.
        def portion_at_hand(subscriber, newest)
          return if subscriber.catching_up
          form, cursor = subscriber.form, subscriber.cursor
          return if form.gzip? && !subscriber.begun?
          group, epoch = subscriber.group, subscriber.epoch
          if group
            portion = group.portion
            return portion if portion&.serves?(group, cursor, epoch, newest)
          end
          portion = form.portion
          portion if portion&.serves?(subscriber.feed, cursor, nil, newest) && (group.nil? || group.passes?(portion, epoch))
        end

        def share(portion, subscriber, after, newest)
          group, feed = subscriber.group, subscriber.feed
          if group && portion.of_epochs?
            group.portion = portion.share(group, after, newest)
          elsif feed && portion.alone? && for_all?(portion, feed, after)
            subscriber.form.portion = portion.share(feed, after, newest)
          end
        end

        # Whether it is all that the feed has, and nothing of it private.
        def for_all?(portion, feed, after)
          return false unless portion.last == feed.newest
          portion.positions.all? do |position|
            expected, after = feed.next_after(after), position
            expected == position && !@log[position].private?
          end
        end

        # From which cursor on the same comes next; nil when the feeds do not know.
        def known_from(subscriber)
          cursor = subscriber.cursor
          feeds = subscriber.subscriptions.map(&:feed)
          feeds.map { |feed| feed.last_until(cursor) }.max if feeds.all? { |feed| feed.covers?(cursor) }
        end
      end

      private_constant :Sharing
    end
  end
end
