# frozen_string_literal: true

require_relative "../event"
require_relative "../form"
require_relative "../form/groups"
require_relative "../form/portion"

module Hikyaku
  class Hub
    class RubyEngine
      # Streams that are not Server-Sent Events as they are: see Form. What they receive is found as for any other (Gathering);
      # here it is what is handed out instead, and what is remembered of it.
      module Forming
        def offers?(form, coding)
          Form.plain?(form, coding)
          true
        end

        private

        def start_forming
          @forms = {}
          @groups = Form::Groups.new
        end

        # Before its subscriptions are set.
        def give_form(subscriber, name, coding)
          form = form_of(name, coding)
          subscriber.form = form
          join_group(subscriber) if form.gzip?
        end

        def form_of(name, coding)
          form = @forms[[name, coding]] ||= Form.new(name, coding, log: @log,
            plain: (name == :message_pack && coding == :gzip) ? form_of(:message_pack, :identity) : nil)
          form.streams += 1
          form
        end

        def take_form_away(subscriber)
          subscriber.leave_epoch
          @groups.leave(subscriber.group)
          let_go(subscriber.form)
        end

        def let_go(form)
          return if (form.streams -= 1) > 0
          @forms.delete([form.name, form.coding])
          let_go(form.plain) if form.plain
        end

        # Also when what it receives has changed: what it shared so far is not what it shares from now on.
        def join_group(subscriber)
          former = subscriber.group
          group = @groups.join(subscriber.form, subscriber.grant, @log.head) unless subscriber.names?
          @groups.leave(former)
          return if group.equal?(former)
          subscriber.leave_epoch
          subscriber.group = group
          group&.missed!
        end

        def take_formed(subscriber, max_bytes)
          return take_formed_rest(subscriber) if subscriber.offset > 0
          return if overrun!(subscriber)
          portion = subscriber.control ? nil : next_portion(subscriber, max_bytes)
          portion = say(subscriber) if subscriber.control
          return unless portion
          subscriber.taken = portion
          portion.bytes
        end

        def take_formed_rest(subscriber)
          at = subscriber.partial_at
          bytes = subscriber.partial || ((record = @log[at]) && piece_for(subscriber, record, at, subscriber.partial_names).bytes)
          unless bytes
            overrun(subscriber)
            return
          end
          ready!(subscriber)
          subscriber.taken_count = (at > subscriber.cursor) ? 1 : 0
          subscriber.taken_to = subscriber.leads_to
          subscriber.taken = bytes.byteslice(subscriber.offset, bytes.bytesize)
        end

        def say(subscriber)
          portion = begin_portion(subscriber)
          portion.say(subscriber.form.said(subscriber.control), subscriber.control)
          portion
        end

        def begin_portion(subscriber)
          portion = Form::Portion.new
          portion.begin! if subscriber.form.gzip? && !subscriber.begun?
          portion
        end

        def next_portion(subscriber, max_bytes)
          subscriber.leave_past_behind if subscriber.past
          return gather_portion(subscriber, nil, max_bytes) if subscriber.restricted?
          newest = subscriber.subscriptions.map { |subscription| subscription.feed.newest }.max
          portion = portion_at_hand(subscriber, newest)
          return portion if portion
          after = known_from(subscriber)
          portion = gather_portion(subscriber, subscriber.group, max_bytes)
          share(portion, subscriber, after, newest) if portion && after && !subscriber.ready
          portion
        end

        def gather_portion(subscriber, group, max_bytes)
          form = subscriber.form
          epoch = subscriber.epoch
          portion = begin_portion(subscriber)
          to = subscriber.cursor
          @budget = Gathering::SCAN_BUDGET
          while (position = following(subscriber, to))
            record = @log[position]
            epoch = group&.epoch_for(position, to, epoch) { form.bytes(position, record) }
            piece = epoch ? epoch[position] : piece_for(subscriber, record, position, names_of(subscriber, record, position))
            break if portion.count > 0 && portion.bytesize + piece.bytesize > max_bytes
            portion.add(piece, position, epoch)
            to = position
          end
          pending = position || @reached < @log.head
          go_on(subscriber, position) if pending || subscriber.catching_up
          portion.to = position ? to : @reached
          return portion if portion.count > 0
          subscriber.cursor = portion.to
          caught_up!(subscriber) if subscriber.catching_up && !pending
        end

        def piece_for(subscriber, record, position, names)
          form = subscriber.form
          piece = form.piece(position, record)
          names ? form.named(names, piece) : piece
        end

        # Nothing is left of what it asked for.
        def caught_up!(subscriber)
          subscriber.catching_up = false
          subscriber.control = Event::CAUGHT_UP
          nil
        end

        def wrote_portion(subscriber, portion, bytes)
          return wrote_part_of(portion, subscriber, bytes) if bytes < portion.bytesize
          subscriber.receive(portion) if subscriber.form.gzip?
          subscriber.was_told(portion.said) if portion.said
          subscriber.cursor = portion.to if portion.to
          @deliveries += portion.count
          ready!(subscriber) if subscriber.control || portion.said
        end

        # What was begun counts as sent: nothing else can be said before the rest of it.
        def wrote_part_of(portion, subscriber, bytes)
          subscriber.blocked = true
          gzip = subscriber.form.gzip?
          portion.each do |piece, position, epoch|
            break if bytes.zero?
            subscriber.receive_piece(piece, epoch) if gzip
            subscriber.was_told(portion.said) if position.nil? && !piece.equal?(Form::Portion::HEADER)
            break stop_within(subscriber, piece, position, bytes) if bytes < piece.bytesize
            bytes -= piece.bytesize
            next unless position
            @deliveries += 1
            subscriber.cursor = position
          end
        end

        # Blocks that stand alone are the same when they are made again; what is of an epoch is small, and what was said is kept.
        def stop_within(subscriber, piece, position, bytes)
          subscriber.offset = bytes
          subscriber.partial_at = position || subscriber.cursor
          keep_names(subscriber, position) if position
          subscriber.partial = piece.bytes if position.nil? || piece.bytesize <= Gathering::KEPT
        end
      end

      private_constant :Forming
    end
  end
end
