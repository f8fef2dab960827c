# frozen_string_literal: true

require "json"
require_relative "../../support/clock"
require_relative "errors"
require_relative "../level"
require_relative "../wire"

module Hikyaku
  module Broker
    class Client
      # One delivery of a message to this client, which has the message until the lease ends. docs/protocol.md, sections 7 and 8.
      #
      # A delivery belongs to its connection. When that breaks, the broker delivers the message again, here or elsewhere. This delivery is stale
      # from then on: to settle it has no effect and returns false.
      #
      # {#ack}, {#release}, {#reject}, {#dead} and {#touch} return one of three:
      #
      #     true           the broker has confirmed it (only with `wait: true`)
      #     :unconfirmed   it is sent in the background; whether the broker accepts it is not known yet
      #     false          it has no effect: the delivery was settled before, or is stale
      #
      # `delivery.ack(wait: true)` waits for the broker. When the broker refuses what was sent in the background, because the lease had ended, the
      # client's `on_error` gets a {Stale}.
      class Delivery
        include Support::Clock

        MAX_REASON_BYTES = 1024
        # Kinds of a NACK.
        RELEASE = 0
        REJECT = 1
        DEAD = 2
        private_constant :MAX_REASON_BYTES, :RELEASE, :REJECT, :DEAD

        # @return [String] name of the queue, or the identity of the client whose own queue it is
        attr_reader :queue

        # @param transport [Transport] that has brought it
        # @param now [Float] seconds on the monotonic clock
        # @api private
        def initialize(push, queue, consumer, transport, now)
          @push = push
          @queue = queue
          @consumer = consumer
          @transport = transport
          @state = :out
          @kept = true
          renew(now, lease)
        end

        # @return [Integer] id of the message: the same when it is delivered again
        def id = @push.message

        # The number of this delivery. Numbers rise and are never used again, so that they can serve as fencing tokens for what the work on the
        # message writes elsewhere.
        #
        # @return [Integer]
        def number = @push.id

        # @return [String] its encoding is UTF-8, whether its bytes are valid or not
        def payload = @payload ||= @push.payload.force_encoding(Encoding::UTF_8)

        # @return [Object] the payload, parsed as JSON
        # @raise [JSON::ParserError]
        def json = JSON.parse(payload)

        # @return [Hash{String => String}]
        def properties = @properties ||= Wire::Properties.parse(@push.properties).each_value { |value| value.force_encoding(Encoding::UTF_8) }.freeze

        # @param name [#to_s]
        # @return [String, nil] the property
        def [](name) = properties[name.to_s]

        # @return [Time] when it was sent
        def sent_at = Time.at(0, @push.sent_at, :millisecond)

        # @return [Integer] 0 to 9
        def priority = @push.priority

        # @return [Integer] 1 for the first delivery of the message
        def attempt = @push.attempt

        # @return [Integer] how often a receiver has rejected it
        def failures = @push.failures

        # @return [Integer] how often a receiver has vanished while it worked on it
        def crashes = @push.crashes

        # @return [Float] seconds
        def lease = @push.lease / 1000.0

        # @return [Boolean] the message was delivered before
        def redelivered? = @push.redelivered?

        # @return [Boolean] a receiver has vanished while it worked on it: the broker delivers it alone
        def poison_candidate? = @push.poison_candidate?

        # Acknowledges the message: the broker deletes it. Without `wait:` and `level:` one frame covers several acknowledgements.
        #
        # @param level [Symbol, nil] that the deletion is to reach: `:memory`, `:written`, `:synced`; nil: the broker's default
        # @param wait [Boolean] until the broker has confirmed it
        # @return [Boolean, Symbol] true: the broker has deleted the message, at that level; `:unconfirmed`: it is not known yet; false: the delivery
        #   was settled before, or is stale
        # @raise [Failure] no answer came: the message may be delivered again, or not
        def ack(level: nil, wait: false)
          unless level || wait
            return false unless @consumer.ack(self)
            @consumer.flush_later
            return :unconfirmed
          end
          settle(wait) { |id| Wire.free(first: number, id: id, level: (Level.number(level) if level)) }
        end

        # Returns the message. That is no failure, and another receiver may get it.
        #
        # @param delay [Numeric] seconds before it is delivered again
        # @param wait [Boolean] until the broker has confirmed it
        # @return [Boolean, Symbol] as {#ack}
        def release(delay: 0, wait: false) = nack(RELEASE, "", delay, wait)

        # Reports a failure. The message is delivered again after the delay, or becomes a dead letter when it has failed as often as the queue allows.
        #
        # @param reason [String] kept with a dead letter, up to 1,024 bytes
        # @param delay [Numeric] seconds
        # @param wait [Boolean] until the broker has confirmed it
        # @return [Boolean, Symbol] as {#ack}
        def reject(reason = "", delay: 0, wait: false) = nack(REJECT, reason, delay, wait)

        # Makes the message a dead letter.
        #
        # @param reason [String] kept with it, up to 1,024 bytes
        # @param wait [Boolean] until the broker has confirmed it
        # @return [Boolean, Symbol] as {#ack}
        def dead(reason = "", wait: false) = nack(DEAD, reason, 0, wait)

        # Renews the lease, and the time that the block may run.
        #
        # @param lease [Numeric, nil] seconds; nil: the subscription's
        # @param wait [Boolean] until the broker has confirmed it
        # @return [Boolean, Symbol] as {#ack}
        def touch(lease: nil, wait: false)
          @consumer.touch(self, Wire.milliseconds(lease || 0), wait: wait)
        end

        # @return [Boolean] its connection has broken, or its lease has ended or was given up, as far as this client knows
        def stale? = @state == :stale || @state == :timed_out || @transport.closed? || (@state == :out && now > @lease_until)

        # @return [String] why a delivery is stale
        # @api private
        def why_stale
          return "it had run for too long" if @state == :timed_out
          @transport.closed? ? "its connection had broken" : "its lease had ended"
        end

        # @return [Boolean] this client has acknowledged, released or rejected it
        def settled? = @state == :settled

        # @return [String] without the payload
        def inspect = "#<#{self.class.name} #{number} of message #{id} in #{queue.inspect}#{" stale" if stale?}#{" settled" if settled?}>"

        # @api private
        attr_reader :transport

        # @return [Boolean] the client renews its lease
        # @api private
        def kept? = @kept

        # @api private
        attr_writer :kept

        # @param state [Symbol] :out, :settled, :stale or :timed_out
        # @api private
        attr_accessor :state

        # @return [Float] when its lease ends, as far as this client knows
        # @api private
        attr_reader :lease_until

        # @return [Integer] number of its subscription
        # @api private
        def subscription = @push.subscription

        # @param now [Float] the start of the lease
        # @param seconds [Float] its length
        # @api private
        def renew(now, seconds)
          @lease_until = now + seconds
        end

        private

        def nack(kind, reason, delay, wait)
          delay = Wire.milliseconds(delay)
          reason = reason.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?").byteslice(0, MAX_REASON_BYTES).scrub("")
          settle(wait) { |id| Wire.nack(delivery: number, id: id, kind: kind, delay: delay, reason: reason) }
        end

        def settle(wait, &frame) = @consumer.settle(self, wait: wait, &frame)
      end
    end
  end
end
