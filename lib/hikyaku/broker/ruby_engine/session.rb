# frozen_string_literal: true

require_relative "../permission"
require_relative "../wire/reader"
require_relative "output_buffer"

module Hikyaku
  module Broker
    class RubyEngine
      # One connection of a client.
      #
      #     :new ── HELLO ──► :undecided ── permit ──► :open ──► :ended ──► :gone
      class Session
        # Bytes that wait to be sent from which on a receiver gets no more deliveries.
        HIGH_WATER = 256 * 1024
        # Bytes of answers among them from which on nothing is read from the client. Deliveries do not count: to take them, a client may
        # first have to send something.
        MAX_ANSWERS = 1024 * 1024
        # Of a delivery's number, below that of its session.
        NUMBER_BITS = 36
        private_constant :HIGH_WATER, :MAX_ANSWERS, :NUMBER_BITS

        attr_reader :serial, :address, :reader, :buffer, :subscriptions
        # By id, oldest first.
        attr_reader :deliveries
        attr_accessor :state, :agent, :permissions, :next_delivery
        # Wire::Frames::Hello, until it is decided.
        attr_accessor :hello
        # A binary String; empty: none.
        attr_accessor :identity
        attr_accessor :producer
        # Bytes that the client takes in one frame.
        attr_accessor :max_frame
        # Seconds; nil: none.
        attr_accessor :heartbeat
        attr_accessor :heard_at, :sent_at
        # Whether the client has sent DRAIN, and whether it has sent FORGET.
        attr_accessor :draining, :forgets
        # Whether the client acknowledges PUSHes: it says which messages it works on.
        attr_accessor :reports_starts
        # Messages, and their bytes, that wait for their ACK.
        attr_accessor :unacked, :unacked_bytes
        # How many of its subscriptions are passed over since a lease ended.
        attr_accessor :lapsed
        # Whether its socket takes no more, whether it is in the list of Output, and whether it gets no deliveries until it has read.
        attr_accessor :blocked, :listed, :paused
        # Bytes that the driver has taken to send.
        attr_accessor :taken
        # The newest PendingAck, which may become a range.
        attr_accessor :last_ack
        attr_accessor :heartbeat_timer, :expiry_timer

        def initialize(serial, address, now, max_frame)
          @serial = serial
          @address = address
          @reader = Wire::Reader.new(from: :client, max_frame: max_frame)
          @buffer = OutputBuffer.new
          @subscriptions = {}
          @deliveries = {}
          @state = :new
          @identity = "".b
          @agent = ""
          @permissions = []
          @max_frame = max_frame
          @heard_at = @sent_at = now
          @unacked = @unacked_bytes = @taken = @lapsed = 0
          @next_delivery = (serial << NUMBER_BITS) + 1
          @draining = @forgets = @reports_starts = @blocked = @listed = @paused = false
        end

        # Whether the client has not said HELLO.
        def new? = @state == :new

        def open? = @state == :open

        def ended? = @state == :ended || @state == :gone

        # Whether `id` may be one of its deliveries.
        def numbers?(id) = id >> NUMBER_BITS == @serial

        def takes_deliveries?
          return false if @draining || @paused
          return true if @buffer.size < HIGH_WATER
          @paused = true
          false
        end

        def below_high_water? = @buffer.size < HIGH_WATER

        # Whether the client sends requests and does not read the answers.
        def answers_unread? = @buffer.answers >= MAX_ANSWERS

        # `key` is the queue's name as permissions write it.
        def may?(right, key) = @permissions.any? { |permission| permission.rights.anybits?(right) && permission.covers?(key) }

        # Without credentials and permissions.
        def inspect = "#<#{self.class} #{@serial} #{@state}>"
      end
    end
  end
end
