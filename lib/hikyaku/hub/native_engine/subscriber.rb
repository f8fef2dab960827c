# frozen_string_literal: true

module Hikyaku
  class Hub
    class NativeEngine
      # One connection, as Ruby sees it: its state is read from the engine. Two objects of the same subscriber are equal.
      class Subscriber
        # One matcher of one subscriber.
        Subscription = Struct.new(:subscriber, :matcher) do
          def payload = subscriber.grant.payload_of(matcher)
        end

        attr_reader :serial
        attr_accessor :grant
        attr_reader :address, :last_event_id
        # The driver's own, if it is written in Ruby: what it needs to reach the client.
        attr_accessor :connection
        attr_accessor :heard

        def initialize(engine, serial, grant, address, last_event_id = nil)
          @engine = engine
          @serial = serial
          @grant = grant
          @address = address
          @last_event_id = last_event_id
          @connection = @id = @end = nil
          @heard = 0
        end

        # Random for each connection (Mercure draft-08, section "Subscriber Identifier Assignment").
        def id = @id ||= state(0)

        def closing = state(1)

        def cursor = state(2)

        def blocked = state(3) || false

        def offset = state(4) ? 1 : 0

        def control = state(5)

        # The bytes that are written before the stream is closed between two events: what was pending for it alone, and this.
        def last_words(frame) = @engine.last_words_for(self, frame)

        def closed = @end ? true : @engine.state_of(@serial).nil?

        def subscriptions = @grant.matchers.map { |matcher| Subscription.new(self, matcher) }

        def known_as(id)
          @id ||= id
          self
        end

        # The engine has removed it; its last state is stored.
        def ended(state) = @end ||= state || []

        def ==(other) = other.is_a?(Subscriber) && @serial == other.serial && @engine.equal?(other.engine)
        alias_method :eql?, :==

        def hash = @serial.hash

        def inspect = "#<#{self.class.name} #{@serial}>"

        protected

        attr_reader :engine

        private

        def state(place) = (@end || @engine.state_of(@serial) || [])[place]
      end
    end
  end
end
