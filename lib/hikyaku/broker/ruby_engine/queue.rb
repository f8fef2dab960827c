# frozen_string_literal: true

require_relative "heap"
require_relative "priority_fifo"
require_relative "text"

module Hikyaku
  module Broker
    class RubyEngine
      # A queue: messages that wait, by priority, and receivers that take turns.
      #
      #     lines 9 … 0      messages that wait
      #     suspects         messages whose receiver vanished with them
      #     parked           messages that no receiver takes, for their size
      #     rotation         receivers that may have a message now
      class Queue
        CONTROL = /[\x00-\x1F\x7F]/n
        # Above any id of a message.
        PRIORITY_KEYS = 1 << 58
        private_constant :CONTROL, :PRIORITY_KEYS

        attr_reader :name
        # 0: a queue; 1: the queue of a client.
        attr_reader :kind
        # In the journal.
        attr_reader :number
        # Subscriptions, as keys.
        attr_reader :receivers
        # Those of them that may have a message now; the first has the next turn.
        attr_reader :rotation
        # Those that cannot take the message whose id is `skipped_for`, for its size alone.
        attr_reader :skipped
        attr_accessor :skipped_for
        # Whether it has to be found out (again) if any receiver takes the first message.
        attr_accessor :recheck
        # Dead letters by id.
        attr_reader :dead
        # Delayed messages, as keys.
        attr_reader :delayed
        # How many messages wait for a receiver, and how many deliveries are out.
        attr_reader :ready
        attr_accessor :out
        # Bytes of all its messages.
        attr_accessor :bytes
        # The subscription that is kept free for a suspect.
        attr_accessor :reserved
        # Whether it is in the table of queues.
        attr_accessor :registered
        # The newest segment of the journal with a record of its name.
        attr_accessor :named
        attr_accessor :idle_timer
        # Counters.
        attr_accessor :sent, :freed, :redelivered, :failed, :crashed, :expired

        def self.key(name, kind) = kind.zero? ? name : "@#{name}".b

        # Whether a queue of this kind may have this name.
        def self.name?(name, kind)
          name.bytesize.between?(1, 255) && !name.match?(CONTROL) && (kind == 1 || !name.start_with?("@")) && Text.utf8?(name)
        end

        def initialize(name, kind, number)
          @name = name
          @kind = kind
          @number = number
          @receivers = {}.compare_by_identity
          @rotation = {}.compare_by_identity
          @skipped = {}.compare_by_identity
          @dead = {}
          @delayed = {}.compare_by_identity
          @lines = []
          @waiting = 0 # a bit for each priority that may have messages
          @suspects = Heap.new
          @parked = {}.compare_by_identity
          @recheck = false
          @ready = @out = @bytes = 0
          @sent = @freed = @redelivered = @failed = @crashed = @expired = 0
        end

        # Its name as permissions and the table of queues write it.
        def key = @key ||= Queue.key(@name, @kind)

        def messages = @ready + @delayed.size + @out + @dead.size

        # Whether nothing would be lost with it.
        def idle? = @receivers.empty? && messages.zero?

        # Whether there is nothing to deliver, and no receiver is reserved or skipped.
        def settled? = @ready.zero? && @reserved.nil? && @skipped.empty?

        def push(message)
          message.state = :ready
          @ready += 1
          priority = message.priority
          if message.suspect?
            @suspects.push((9 - priority) * PRIORITY_KEYS + message.id, message)
          else
            line = (@lines[priority] ||= PriorityFifo.new)
            message.redelivered? ? line.push_back(message) : line.push(message)
            @waiting |= 1 << priority
          end
        end

        # The message whose turn it is, suspects aside.
        def first
          while (priority = @waiting.bit_length - 1) >= 0
            message = @lines[priority].first
            return message if message
            @waiting &= ~(1 << priority)
          end
        end

        # Removes `first`.
        def shift(message)
          @lines[message.priority].shift
          @ready -= 1
        end

        def first_suspect
          return if @suspects.empty?
          @suspects.shift while @suspects.first&.gone?
          @suspects.first
        end

        # Removes `first_suspect`.
        def shift_suspect
          @suspects.shift
          @ready -= 1
        end

        # Sets `first` aside: it waits, but lets others go before it.
        def park(message)
          @lines[message.priority].shift
          @parked[message] = true
        end

        # Puts parked messages that the block chooses before new ones. O(parked messages).
        def unpark
          @parked.each_key.select { |message| yield message }.each do |message|
            @parked.delete(message)
            @lines[message.priority].push_back(message)
            @waiting |= 1 << message.priority
          end
        end

        # Accounts for a waiting message that is gone.
        def lost(message)
          @ready -= 1
          return if @parked.delete(message)
          @lines[message.priority].lost unless message.suspect?
        end

        # Yields messages that wait for a receiver, in no order.
        def each_ready(&block)
          @suspects.each { |message| yield message unless message.gone? }
          @parked.each_key(&block)
          @lines.each { |line| line&.each(&block) }
        end

        # The oldest message among those that come first in their lines.
        def oldest
          parked = @parked.each_key.min_by { |message| [-message.priority, message.id] }
          [*@lines.map { |line| line&.first }, first_suspect, parked].compact.min_by(&:id)
        end

        # The delayed message that is due first. O(delayed messages).
        def earliest = @delayed.each_key.min_by { |message| [message.due, message.id] }
      end
    end
  end
end
