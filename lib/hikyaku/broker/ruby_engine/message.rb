# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # A message that is not done with.
      #
      #     ready ──► out ──► gone              delayed ──► ready
      #       ▲        │
      #       └────────┴──► delayed, dead       dead ──► ready, gone
      #
      # Millions may wait. An object takes room for the variables that were set: those that few messages need are set where they are
      # needed, and count as 0 before.
      class Message
        MOST = 0xFFFF
        private_constant :MOST
        # Bytes that one takes beside its content, with its places in tables and queues: measured, and rounded up.
        INDEX_BYTES = 512

        # @return [Integer]
        attr_reader :id
        # @return [Queue]
        attr_reader :queue
        # @return [Integer] ms since 1970
        attr_reader :sent_at
        # @return [Integer]
        attr_reader :priority
        # @return [Integer] that was asked for
        attr_reader :level
        # @return [Integer] bytes of the content that are properties
        attr_reader :properties_size
        # @return [Integer] bytes of the content
        attr_reader :size
        # @return [String, nil] properties and payload; nil: on the disk only
        attr_accessor :content
        # @return [Symbol] :ready, :delayed, :out, :dead or :gone
        attr_accessor :state
        # @return [Integer] why it is dead (or was: then it does not expire any more); 0: it never was
        attr_writer :reason
        # @return [Integer, nil] where it stands in the timetables
        attr_accessor :due_slot, :expiry_slot
        # @return [Delivery, nil] while it is out
        attr_accessor :delivery
        # @return [Integer] the sender's number for it; 0: none
        attr_writer :sequence
        # @return [Integer, nil] the sender's own number, where it has a sequence
        attr_accessor :producer
        # @return [Integer, nil] where in the journal; nil: in memory alone
        attr_accessor :place
        # @return [Integer, nil] bytes of its record, where it has a place
        attr_accessor :stored

        # @param content [String] bytes of its own: a slice may keep all that was read with it
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
          @again = false
        end

        # @return [Integer] how often it was rejected
        def failures = @again ? @failures : 0

        # @return [Integer] how often a receiver vanished with it
        def crashes = @again ? @crashes : 0

        # @return [Integer] how often it came back for another cause
        def returns = @again ? @returns : 0

        # (see #reason=)
        def reason = @reason || 0

        # @return [String] of the receiver that rejected it
        def words = @words || ""

        # @return [Integer] ms since 1970; 0: at once
        def due = @due || 0

        # @return [Integer] ms since 1970; 0: never
        def expires = @expires || 0

        # (see #sequence=)
        def sequence = @sequence || 0

        # @return [Integer, nil] number of the segment where it stands; nil: in memory alone
        def segment = @place && @place >> 32

        def words=(words)
          @words = words + "" # bytes of its own, as with the content
        end

        def due=(at)
          @due = at unless at == due
        end

        def expires=(at)
          @expires = at unless at == expires
        end

        # @return [Integer] which delivery the next one is
        def attempt = @again ? [1 + @failures + @crashes + @returns, MOST].min : 1

        # @return [Boolean] its receiver vanished with it
        def suspect? = @again && @crashes > 0

        # @return [Boolean] it was delivered before
        def again? = @again

        # @return [Boolean] something became of it that its record in the journal has to say
        def changed? = again? || reason > 0

        # @return [Boolean]
        def gone? = @state == :gone

        # @return [Boolean]
        def ready? = @state == :ready

        # Counts one more of what it came back for.
        #
        # @param cause [Symbol] :crash, :failure, or anything else
        # @return [void]
        def came_back(cause)
          came_back_before(0, 0, 0) unless @again
          case cause
          when :crash then @crashes += 1 if @crashes < MOST
          when :failure then @failures += 1 if @failures < MOST
          else @returns += 1 if @returns < MOST
          end
          @again = true
        end

        # What a record in the journal says of how often it came back.
        #
        # @return [void]
        def came_back_before(failures, crashes, returns)
          @failures = failures
          @crashes = crashes
          @returns = returns
          @again = failures + crashes + returns > 0
        end

        # Forgets what it came back for: it is delivered as if for the first time.
        #
        # @return [void]
        def forgive = @again = false
      end
    end
  end
end
