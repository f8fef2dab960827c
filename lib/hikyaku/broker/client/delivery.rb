# frozen_string_literal: true

require "json"
require_relative "errors"
require_relative "../level"
require_relative "../wire"

module Hikyaku
  module Broker
    class Client
      # One hand-over of a message to this client, which has it until its lease ends. docs/protocol.md, sections 7 and 8.
      #
      # A delivery belongs to its connection: when that breaks, the message is delivered again, here or elsewhere, and this
      # delivery is stale: to settle it does nothing, and says false.
      #
      # {#free}, {#release}, {#reject}, {#dead} and {#touch} answer one of three:
      #
      #     true           the broker has confirmed it (only with `wait: true`)
      #     :unconfirmed   it is said in the background; whether the broker accepts it is not known yet
      #     false          it does nothing: the delivery was settled before, or is stale
      #
      # Who must know that a message is done with waits: `delivery.free(wait: true)`. What the broker refuses in the background, because the
      # lease had ended, is told to the client's `on_error`.
      class Delivery
        # Bytes of the words that the broker keeps.
        WORDS_BYTES = 1024
        private_constant :WORDS_BYTES

        # @return [String] of the queue, or of the client whose queue it is
        attr_reader :queue

        # @param push [Wire::Frames::Push]
        # @param queue [String]
        # @param link [Link]
        # @param session [Session] on which it came
        # @param now [Float] seconds on the monotonic clock
        # @api private
        def initialize(push, queue, link, session, now)
          @push = push
          @queue = queue
          @link = link
          @session = session
          @state = :out
          @kept = true
          renew(now, lease)
        end

        # @return [Integer] of the message: the same when it is delivered again
        def id = @push.message

        # The number of this hand-over: rising, and never used again, so that it can fence what the message's work
        # writes elsewhere.
        #
        # @return [Integer]
        def number = @push.id

        # @return [String] labelled UTF-8, whatever it is
        def payload = @payload ||= @push.payload.force_encoding(Encoding::UTF_8)

        # @return [Object] the payload, read as JSON
        # @raise [JSON::ParserError]
        def json = JSON.parse(payload)

        # @return [Hash{String => String}]
        def properties = @properties ||= Wire::Properties.parse(@push.properties).each_value { |value| value.force_encoding(Encoding::UTF_8) }.freeze

        # @param name [#to_s] of a property
        # @return [String, nil]
        def [](name) = properties[name.to_s]

        # @return [Time] when it was sent
        def sent_at = Time.at(0, @push.sent_at, :millisecond)

        # @return [Integer] 0 to 9
        def priority = @push.priority

        # @return [Integer] 1 for the first delivery of the message
        def attempt = @push.attempt

        # @return [Integer] how often a receiver has rejected it
        def failures = @push.failures

        # @return [Integer] how often its receiver has vanished with it
        def crashes = @push.crashes

        # @return [Float] seconds
        def lease = @push.lease / 1000.0

        # @return [Boolean] it was delivered before
        def redelivered? = @push.again

        # @return [Boolean] a receiver vanished with it: it comes alone
        def suspect? = @push.suspect

        # Done with. It is said in the background, along with others, unless one waits.
        #
        # @param level [Symbol, nil] at which it is to be acknowledged: `:memory`, `:written`, `:synced`; nil: the broker's usual
        # @param wait [Boolean] until the broker says so
        # @return [Boolean, Symbol] true: the broker has freed it, at that level; `:unconfirmed`: it does not know it yet; false: it was settled
        #   before, or is stale
        # @raise [Failure] there was no answer to wait for: the message may be delivered again, or not
        def free(level: nil, wait: false)
          return @link.free(self) && :unconfirmed unless level || wait
          settle(wait) { |id| Wire.free(first: number, id: id, level: (Level.number(level) if level)) }
        end

        # Gives it back: it counts as nothing, and another receiver may have it.
        #
        # @param delay [Numeric] seconds before it is delivered again
        # @param wait [Boolean] until the broker says so
        # @return [Boolean, Symbol] as {#free}
        def release(delay: 0, wait: false) = nack(0, "", delay, wait)

        # It failed: it is delivered again after the delay, or is a dead letter when it has failed as often as the queue allows.
        #
        # @param words [String] why; kept beside a dead letter, up to 1,024 bytes
        # @param delay [Numeric] seconds
        # @param wait [Boolean] until the broker says so
        # @return [Boolean, Symbol] as {#free}
        def reject(words = "", delay: 0, wait: false) = nack(1, words, delay, wait)

        # It is a dead letter now.
        #
        # @param words [String] why
        # @param wait [Boolean] until the broker says so
        # @return [Boolean, Symbol] as {#free}
        def dead(words = "", wait: false) = nack(2, words, 0, wait)

        # Its lease begins anew, and the time that its block may run.
        #
        # @param lease [Numeric, nil] seconds; nil: the subscription's
        # @param wait [Boolean] until the broker says so
        # @return [Boolean, Symbol] as {#free}
        def touch(lease: nil, wait: false)
          @link.touch(self, Link.milliseconds(lease || 0), wait: wait)
        end

        # @return [Boolean] its connection has broken, or its lease has ended or was given up, as far as this client knows
        def stale? = @state == :stale || @state == :timed_out || @session.severed? || (@state == :out && now > @lease_until)

        # @return [String] why a delivery is stale
        # @api private
        def why_stale
          return "it had run for too long" if @state == :timed_out
          @session.severed? ? "its connection had broken" : "its lease had ended"
        end

        # @return [Boolean] this client has said what has become of it
        def settled? = @state == :settled

        # @return [String] without the payload
        def inspect = "#<#{self.class.name} #{number} of message #{id} in #{queue.inspect}#{" stale" if stale?}#{" settled" if settled?}>"

        # @return [Session]
        # @api private
        attr_reader :session

        # @return [Boolean] the client keeps its lease from ending
        # @api private
        def kept? = @kept

        # @param kept [Boolean]
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

        # @param now [Float] when its lease begins anew
        # @param seconds [Float] how long it is
        # @api private
        def renew(now, seconds)
          @lease_until = now + seconds
        end

        private

        def nack(kind, words, delay, wait)
          delay = Link.milliseconds(delay)
          words = words.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?").byteslice(0, WORDS_BYTES).scrub("")
          settle(wait) { |id| Wire.nack(delivery: number, id: id, kind: kind, delay: delay, words: words) }
        end

        def settle(wait, &frame) = @link.settle(self, wait: wait, &frame)

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
