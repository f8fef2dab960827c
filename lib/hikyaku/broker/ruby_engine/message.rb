# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # A message from its SEND to its end.
      #
      #     ready ──► out ──► gone              delayed ──► ready
      #       ▲        │
      #       └────────┴──► delayed, dead       dead ──► ready, gone
      #
      # There may be millions of them. An object takes room for the variables that were set: those that few messages need are set where
      # they are needed, and read as 0 before.
      class Message
        MAX_COUNT = 0xFFFF
        private_constant :MAX_COUNT
        # Bytes that one takes beside its content, with its places in tables and queues: measured, and rounded up.
        INDEX_BYTES = 512

        attr_reader :id, :queue, :priority
        # Milliseconds since 1970.
        attr_reader :sent_at
        # The level that its sender asked for.
        attr_reader :level
        # Bytes of the content, and how many of them are properties.
        attr_reader :size, :properties_size
        # Properties and payload; nil: on the disk only.
        attr_accessor :content
        attr_accessor :state
        # Why it is dead, or was: then it does not expire any more. 0: it never was.
        attr_writer :death
        attr_accessor :due_timer, :expiry_timer
        # The Delivery, while it is out.
        attr_accessor :delivery
        # The number that its sender gave it, and that of the producer; 0: none.
        attr_writer :sequence
        attr_accessor :producer
        # Where its record is in the journal, and how many bytes that has; nil: in memory alone.
        attr_accessor :place, :stored_bytes

        # `content` is a String of its own: a slice would keep the whole frame in memory.
        def initialize(id, queue, sent_at, priority, level, properties_size, content)
          @id = id
          @queue = queue
          @sent_at = sent_at
          @priority = priority
          @level = level
          @properties_size = properties_size
          @content = content
          @size = content.bytesize
          @state = :new
          @redelivered = false
        end

        # How often a receiver rejected it, vanished with it, or returned it for another cause.
        def failures = @redelivered ? @failures : 0

        def crashes = @redelivered ? @crashes : 0

        def returns = @redelivered ? @returns : 0

        def death = @death || 0

        # What the receiver that rejected it said.
        def reason = @reason || ""

        # Milliseconds since 1970; 0: at once.
        def due = @due || 0

        # Milliseconds since 1970; 0: never.
        def expires = @expires || 0

        def sequence = @sequence || 0

        # Number of the segment with its record; nil: in memory alone.
        def segment = @place && @place >> 32

        # Copies, for the same cause as with the content.
        def reason=(text)
          @reason = text + ""
        end

        def due=(at)
          @due = at unless at == due
        end

        def expires=(at)
          @expires = at unless at == expires
        end

        # The number of its next delivery.
        def attempt = @redelivered ? [1 + @failures + @crashes + @returns, MAX_COUNT].min : 1

        # Whether a receiver vanished with it: it may be the cause.
        def suspect? = @redelivered && @crashes > 0

        def redelivered? = @redelivered

        # Whether a record of it in the journal has to say more than its SEND did.
        def changed? = redelivered? || death > 0

        def gone? = @state == :gone

        # Counts a delivery that ended as :crash, :failure, or otherwise.
        def count_return(cause)
          restore_counts(0, 0, 0) unless @redelivered
          case cause
          when :crash then @crashes += 1 if @crashes < MAX_COUNT
          when :failure then @failures += 1 if @failures < MAX_COUNT
          else @returns += 1 if @returns < MAX_COUNT
          end
          @redelivered = true
        end

        def restore_counts(failures, crashes, returns)
          @failures = failures
          @crashes = crashes
          @returns = returns
          @redelivered = failures + crashes + returns > 0
        end

        # Delivers it as if for the first time.
        def reset_counts = @redelivered = false
      end
    end
  end
end
