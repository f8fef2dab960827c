# frozen_string_literal: true

require_relative "heap"
require_relative "lane"

module Hikyaku
  module Broker
    class RubyEngine
      # A queue: messages that wait, by priority, and receivers that take turns.
      #
      #     lanes 9 … 0      what waits
      #     suspects         what a receiver vanished with
      #     parked           what nobody takes, for its size
      #     rotation         receivers that may have a message now
      class Queue
        FIGURES = %i[sent freed redelivered failed crashed expired].freeze
        # Above any id of a message.
        LANE_KEYS = 1 << 58
        private_constant :LANE_KEYS

        # @return [String] binary
        attr_reader :name
        # @return [Integer] 0 a queue, 1 of a client
        attr_reader :kind
        # @return [Integer] in the journal
        attr_reader :number
        # @return [Hash{Subscription => true}] those that there are
        attr_reader :receivers
        # @return [Hash{Subscription => true}] those that may have a message, whose turn is next first
        attr_reader :rotation
        # @return [Hash{Subscription => true}] those that cannot take the message whose turn it was, for its size alone
        attr_reader :aside
        # @return [Integer] the id of that message
        attr_accessor :aside_for
        # @return [Boolean] whether anybody takes it is to be asked (again)
        attr_accessor :look
        # @return [Hash{Integer => Message}]
        attr_reader :dead
        # @return [Hash{Message => true}]
        attr_reader :delayed
        # @return [Integer] messages
        attr_reader :ready
        # @return [Integer] deliveries
        attr_accessor :out
        # @return [Integer] of messages that are not done with
        attr_accessor :bytes
        # @return [Subscription, nil] who is being kept free for a suspect
        attr_accessor :reserved
        # @return [Boolean] it has a message or a receiver, or had one not long ago
        attr_accessor :made
        # @return [Integer, nil] the newest segment of the journal with a record of its name
        attr_accessor :named
        # @return [Integer, nil] in the timetable of queues without use
        attr_accessor :idle_slot
        attr_accessor(*FIGURES)

        def initialize(name, kind, number)
          @name = name
          @kind = kind
          @number = number
          @receivers = {}.compare_by_identity
          @rotation = {}.compare_by_identity
          @aside = {}.compare_by_identity
          @dead = {}
          @delayed = {}.compare_by_identity
          @lanes = []
          @waiting = 0 # a bit for each priority that may have messages
          @suspects = Heap.new
          @parked = {}.compare_by_identity
          @look = false
          @ready = @out = @bytes = 0
          @sent = @freed = @redelivered = @failed = @crashed = @expired = 0
        end

        # @return [String] as permissions and the table of queues name it
        def key = @key ||= Queue.key(@name, @kind)

        # @param name [String] binary
        # @param kind [Integer]
        # @return [String]
        def self.key(name, kind) = kind.zero? ? name : "@#{name}".b

        # @return [Integer] messages that are not done with
        def messages = @ready + @delayed.size + @out + @dead.size

        # @return [Boolean] nothing would be lost with it
        def idle? = @receivers.empty? && messages.zero?

        # @return [Boolean] nothing waits, and nobody is kept free for a suspect or was passed over
        def settled? = @ready.zero? && @reserved.nil? && @aside.empty?

        # @param message [Message] that waits from now on
        # @return [void]
        def push(message)
          message.state = :ready
          @ready += 1
          priority = message.priority
          if message.suspect?
            @suspects.push((9 - priority) * LANE_KEYS + message.id, message)
          else
            lane = (@lanes[priority] ||= Lane.new)
            message.again? ? lane.push_back(message) : lane.push(message)
            @waiting |= 1 << priority
          end
        end

        # @return [Message, nil] whose turn it is, suspects aside
        def first
          while (priority = @waiting.bit_length - 1) >= 0
            message = @lanes[priority].first
            return message if message
            @waiting &= ~(1 << priority)
          end
        end

        # Takes `first` away.
        #
        # @param message [Message]
        # @return [void]
        def shift(message)
          @lanes[message.priority].shift
          @ready -= 1
        end

        # @return [Message, nil]
        def first_suspect
          return if @suspects.empty?
          @suspects.shift while @suspects.first&.gone?
          @suspects.first
        end

        # Takes `first_suspect` away.
        #
        # @return [void]
        def shift_suspect
          @suspects.shift
          @ready -= 1
        end

        # It waits, but lets others go before.
        #
        # @param message [Message] `first`
        # @return [void]
        def park(message)
          @lanes[message.priority].shift
          @parked[message] = true
        end

        # What let others go before waits before what is new. O(what did).
        #
        # @yieldparam message [Message]
        # @yieldreturn [Boolean] it is to
        # @return [void]
        def unpark
          @parked.each_key.select { |message| yield message }.each do |message|
            @parked.delete(message)
            @lanes[message.priority].push_back(message)
            @waiting |= 1 << message.priority
          end
        end

        # A message that waited is gone.
        #
        # @param message [Message]
        # @return [void]
        def lost(message)
          @ready -= 1
          return if @parked.delete(message)
          @lanes[message.priority].lost unless message.suspect?
        end

        # @yieldparam message [Message] that waits, in no order
        # @return [void]
        def each_ready(&block)
          @suspects.each { |message| yield message unless message.gone? }
          @parked.each_key(&block)
          @lanes.each { |lane| lane&.each(&block) }
        end

        # Of those whose turn comes first in their lanes.
        #
        # @return [Message, nil] the oldest that waits
        def oldest
          parked = @parked.each_key.min_by { |message| [-message.priority, message.id] }
          [*@lanes.map { |lane| lane&.first }, first_suspect, parked].compact.min_by(&:id)
        end

        # O(those that are delayed).
        #
        # @return [Message, nil] the delayed one whose time comes first
        def earliest = @delayed.each_key.min_by { |message| [message.due, message.id] }
      end
    end
  end
end
