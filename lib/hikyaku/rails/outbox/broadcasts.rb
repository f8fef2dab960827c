# frozen_string_literal: true

module Hikyaku
  class Outbox
    # What turbo-rails broadcasts, exactly when its transaction is committed: with an outbox what models declare (`broadcasts_to`
    # and its sisters) runs at the end of the transaction, before the commit, and not after it, when the process may be no more;
    # and what another process would render later is rendered at once.
    #
    # Where there is no outbox, nothing of this is changed.
    module Broadcasts
      REFRESHED = :hikyaku_outbox_refreshed
      private_constant :REFRESHED

      # Put before Turbo::Broadcastable::ClassMethods.
      module Declaring
        %i[broadcasts_to broadcasts broadcasts_refreshes_to broadcasts_refreshes].each do |name|
          define_method(name) do |*arguments, **options|
            @declares_broadcasts = !Outbox.current.nil?
            super(*arguments, **options)
          ensure
            @declares_broadcasts = false
          end
        end

        # Of all the ways to say "after the commit", this is the end.
        def set_callback(name, *filters, &block)
          return super unless @declares_broadcasts && name == :commit && filters.first == :after
          options = filters.extract_options!
          # Unlike those after it, callbacks before the commit are asked of records too that were only looked at.
          options[:if] = [*options[:if], :trigger_transactional_callbacks?]
          super(:before_commit, :before, *filters.drop(1), options, &block)
        end
      end

      # Put before Turbo::Streams::Broadcasts.
      module Now
        def broadcast_action_later_to(*streamables, **options)
          Broadcasts.now? ? broadcast_action_to(*streamables, **options) : super
        end

        def broadcast_render_later_to(*streamables, **rendering)
          Broadcasts.now? ? broadcast_render_to(*streamables, **rendering) : super
        end

        def broadcast_refresh_later_to(*streamables, request_id: ::Turbo.current_request_id, **attributes)
          return super unless Broadcasts.now?
          # Many records that change together are one refresh.
          Broadcasts.once([stream_name_from(streamables), request_id, attributes]) do
            broadcast_refresh_to(*streamables, request_id: request_id, **attributes)
          end
        end
      end

      # Put before Turbo::AfterCommit: the row is part of the transaction.
      module AtOnce
        def call
          Outbox.current ? yield : super
        end
      end

      module_function

      def now? = !!Outbox.current&.transaction

      # Runs a block, unless it has run for the same thing in the same transaction. One that is rolled back to a savepoint
      # is another transaction.
      def once(thing)
        # Its number, not itself, which holds its records.
        transaction = Outbox.current.transaction.object_id
        last, things = Thread.current[REFRESHED]
        Thread.current[REFRESHED] = [transaction, things = {}] unless transaction == last
        return if things[thing]
        things[thing] = true
        yield
      end
    end
  end
end
