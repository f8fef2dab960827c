# frozen_string_literal: true

require_relative "../permission"
require_relative "../wire/reader"
require_relative "outbox"

module Hikyaku
  module Broker
    class RubyEngine
      # One connection of a client.
      #
      #     :strange ── HELLO ──► :asking ── permit ──► :open ──► :ended ──► :gone
      class Session
        # Bytes that wait to be sent, from which on a receiver gets no more; and of answers among them, from which on nothing is read
        # from it. Never for deliveries alone: to take them, it may first have to be rid of what it says to others.
        CROWDED = 256 * 1024
        DEAF = 1024 * 1024
        # Of a delivery's number, below that of its session.
        NUMBER_BITS = 36
        private_constant :CROWDED, :DEAF, :NUMBER_BITS

        # @return [Integer] its number
        attr_reader :serial
        # @return [String]
        attr_reader :address
        # @return [Wire::Reader]
        attr_reader :reader
        # @return [Outbox]
        attr_reader :outbox
        # @return [Hash{Integer => Subscription}]
        attr_reader :subscriptions
        # @return [Hash{Integer => Delivery}] what is out, oldest first
        attr_reader :deliveries
        # @return [Symbol]
        attr_accessor :state
        # @return [Wire::Frames::Hello, nil] until it is decided
        attr_accessor :hello
        # @return [String] binary; empty: none
        attr_accessor :identity
        # @return [String]
        attr_accessor :agent
        # @return [Producer, nil] what is known of its identity
        attr_accessor :producer
        # @return [Array<Permission>]
        attr_accessor :permissions
        # @return [Float, nil] when they end
        attr_accessor :permitted_until
        # @return [Integer] bytes that it takes in one frame
        attr_accessor :max_frame
        # @return [Float, nil] seconds
        attr_accessor :heartbeat
        # @return [Float] when something came, or was said
        attr_accessor :heard_at, :said_at
        # @return [Boolean] it has said DRAIN
        attr_accessor :drains
        # @return [Boolean] it has said that its identity is not needed any more
        attr_accessor :forgets
        # @return [Boolean] it has said ACK to a PUSH: it says which it has in hand
        attr_accessor :acknowledges
        # @return [Integer] messages, and bytes, that wait for their answer
        attr_accessor :unanswered, :unanswered_bytes
        # @return [Integer]
        attr_accessor :next_delivery
        # @return [Integer] of its subscriptions, those that let a lease end and are passed over
        attr_accessor :lapsed
        # @return [Boolean] its socket takes no more
        attr_accessor :blocked
        # @return [Boolean] it is among those that are ready
        attr_accessor :listed
        # @return [Boolean] deliveries are held back until it has taken what there is
        attr_accessor :crowded
        # @return [Integer] bytes that were taken, and of which nothing is known yet
        attr_accessor :taken
        # @return [Answer, nil] the newest that it will get, which may become a range
        attr_accessor :answer
        # @return [Integer, nil] in the timetables
        attr_accessor :pulse_slot, :permit_slot

        def initialize(serial, address, now, max_frame)
          @serial = serial
          @address = address
          @reader = Wire::Reader.new(from: :client, max_frame: max_frame)
          @outbox = Outbox.new
          @subscriptions = {}
          @deliveries = {}
          @state = :strange
          @identity = "".b
          @agent = ""
          @permissions = []
          @max_frame = max_frame
          @heard_at = @said_at = now
          @unanswered = @unanswered_bytes = @taken = @lapsed = 0
          @next_delivery = (serial << NUMBER_BITS) + 1
          @drains = @forgets = @acknowledges = @blocked = @listed = @crowded = false
        end

        # @return [Boolean]
        def open? = @state == :open

        # @param id [Integer]
        # @return [Boolean] it may be one of its deliveries
        def numbers?(id) = id >> NUMBER_BITS == @serial

        # @return [Boolean] it has not said HELLO
        def strange? = @state == :strange

        # @return [Boolean] nothing more is read from it
        def ended? = @state == :ended || @state == :gone

        # @return [Boolean] deliveries may be sent to it
        def takes_more?
          return false if @drains || @crowded
          return true if @outbox.size < CROWDED
          @crowded = true
          false
        end

        # @return [Boolean] there is room for deliveries again
        def relieved? = @outbox.size < CROWDED

        # @return [Boolean] it asks, and does not take the answers
        def deaf? = @outbox.answers >= DEAF

        # @param right [Integer]
        # @param key [String] of a queue, as patterns name it
        # @return [Boolean]
        def may?(right, key) = @permissions.any? { |permission| permission.rights.anybits?(right) && permission.covers?(key) }

        # @return [String] without what it may and has
        def inspect = "#<#{self.class} #{@serial} #{@state}>"
      end
    end
  end
end
