# frozen_string_literal: true

module Hikyaku
  class Hub
    class NativeEngine
      # One connection, as Ruby sees it: what it is lies in the engine, which is asked. Two objects of the same subscriber are
      # equal.
      class Subscriber
        # One matcher of one subscriber.
        Subscription = Struct.new(:subscriber, :matcher) do
          # @return [Hash, nil] what the token says of it (Mercure draft-08, section "Payloads")
          def payload = subscriber.grant.payload_of(matcher)
        end

        # @return [Integer] its number
        attr_reader :serial
        # @return [Grant]
        attr_accessor :grant
        # @return [String, nil] the client's address, for limits
        attr_reader :address
        # @return [String, nil] what `Mercure-Last-Event-ID` answers; nil when the request named no event
        attr_reader :last_event_id
        # The driver's own, if it is written in Ruby: whatever it needs to reach the client.
        # @return [Object, nil]
        attr_accessor :connection
        # @return [Integer] bytes that the client sent after its request
        attr_accessor :heard

        # @param engine [NativeEngine]
        # @param serial [Integer]
        # @param grant [Grant]
        # @param address [String, nil]
        # @param last_event_id [String, nil] what the request was answered
        def initialize(engine, serial, grant, address, last_event_id = nil)
          @engine = engine
          @serial = serial
          @grant = grant
          @address = address
          @last_event_id = last_event_id
          @connection = @id = @end = nil
          @heard = 0
        end

        # A random id for each connection (Mercure draft-08, section "Subscriber Identifier Assignment").
        #
        # @return [String, nil] nil when it has left without having been asked
        def id = @id ||= state(0)

        # @return [Symbol, nil] why it has to be closed, once it has to be
        def closing = state(1)

        # @return [Integer, nil] everything up to this position was sent, or is not for it
        def cursor = state(2)

        # @return [Boolean] its socket is full
        def blocked = state(3) || false

        # @return [Integer] 1 when a part of an event was sent and nothing else can be said before its rest, else 0
        def offset = state(4) ? 1 : 0

        # @return [String, nil] bytes for it alone that go out at the next event boundary
        def control = state(5)

        # What is written to it before its stream is closed between two events: what was still to be said to it alone, and this.
        #
        # @param frame [String] as Server-Sent Events
        # @return [String] in its form; the end of a compressed stream is in it
        def last_words(frame) = @engine.last_words_for(self, frame)

        # @return [Boolean] it is no longer registered
        def closed = @end ? true : @engine.state_of(@serial).nil?

        # @return [Array<Subscription>]
        def subscriptions = @grant.matchers.map { |matcher| Subscription.new(self, matcher) }

        # @param id [String] as the engine has it
        # @return [self]
        # @api private
        def known_as(id)
          @id ||= id
          self
        end

        # The engine has let go of it.
        #
        # @param state [Array, nil] its last; nil when it was gone already
        # @return [void]
        # @api private
        def ended(state) = @end ||= state || []

        # @return [Boolean] the same subscriber
        def ==(other) = other.is_a?(Subscriber) && @serial == other.serial && @engine.equal?(other.engine)
        alias_method :eql?, :==

        # @return [Integer]
        def hash = @serial.hash

        # @return [String] without the token's claims
        def inspect = "#<#{self.class.name} #{@serial}>"

        protected

        attr_reader :engine

        private

        def state(place) = (@end || @engine.state_of(@serial) || [])[place]
      end
    end
  end
end
