# frozen_string_literal: true

require_relative "../../error"
require_relative "../wire/code"

module Hikyaku
  module Broker
    class Client
      # What every failed request tells.
      class Failure < StandardError
        include Error

        # An error that somebody else has met, for whoever waits: with the place where that is.
        def self.again(error) = error.dup.tap { |copy| copy.set_backtrace(nil) }

        attr_reader :retry_after

        def initialize(message, retryable: false, retry_after: nil)
          super(message)
          @retryable = retryable
          @retry_after = retry_after
        end

        def retryable? = @retryable
      end

      # There was no connection in time: nothing was sent.
      class Unreachable < Failure
        def initialize(message, retryable: true) = super
      end

      # It was sent, and no answer came: it may have been taken or not. A message that was numbered (by a client with an
      # identity) may be sent again by the same client only; the client does so by itself as long as it is open.
      class OutcomeUnknown < Failure
      end

      # The client was closed, or belongs to the process that this one was forked from.
      class Closed < Failure
      end

      # As many messages as the broker permits wait for their acknowledgement, and the caller would not wait.
      class WindowFull < Failure
        def initialize(message = "as many messages as the broker permits wait for their acknowledgement; try again when some were answered") = super(message, retryable: true)
      end

      # A block that works on a delivery has run for longer than it may ({Client#subscribe}, `timeout:`).
      class BlockTimeout < Failure
      end

      # The broker says something that is not of its protocol.
      class NotUnderstood < Failure
      end

      # The broker refused: one class below for each code of docs/protocol.md, section 5.
      class Refused < Failure
        attr_reader :code

        def self.of(code, sentence = nil, retryable: Wire::Code.later?(code), retry_after: nil)
          type = BY_CODE.fetch(code, Refused)
          words = sentence.to_s.scrub("?").strip
          words = type.usual || "the broker refused with code #{code}" if words.empty?
          type.new([words, type.advice].compact.join("; "), code: code, retryable: retryable, retry_after: retry_after)
        end

        def self.too_big(bytes, payload, max_frame)
          words = "the messages have #{bytes} bytes together"
          words = "the payload has #{payload} bytes; with its properties, and to this queue, it may have #{[max_frame - bytes + payload, 0].max}" if payload
          of(Wire::Code::TOO_BIG, "#{words}, so that a frame holds it: the broker's largest has #{max_frame} bytes")
        end

        class << self
          attr_accessor :usual, :advice
        end

        def initialize(message, code:, retryable: false, retry_after: nil)
          super(message, retryable: retryable, retry_after: retry_after)
          @code = code
        end
      end

      # A frame that could not be understood.
      class Malformed < Refused; end

      # A frame that was not allowed at this point.
      class Unexpected < Refused; end

      # No version of the protocol is common to both.
      class WrongVersion < Refused; end

      # Credentials are missing, wrong or over.
      class Unauthorized < Refused; end

      # The client may not do this with this queue.
      class Forbidden < Refused; end

      # Another client has connected under this identity.
      class Fenced < Refused; end

      # Larger than the broker takes.
      class TooBig < Refused; end

      # A field has a value that is not allowed.
      class Invalid < Refused; end

      # There is no such queue.
      class NoSuchQueue < Refused; end

      # There is no such message.
      class NoSuchMessage < Refused; end

      # There is no such subscription.
      class NoSuchSubscription < Refused; end

      # The lease of the delivery has ended.
      class Stale < Refused; end

      # The broker has not the level that was asked for.
      class NoSuchLevel < Refused; end

      # The number of a message is too far ahead.
      class OutOfSequence < Refused; end

      # The queue is full.
      class QueueFull < Refused; end

      # The broker has too little memory, or this client too many requests.
      class Overloaded < Refused; end

      # The broker's disk is full.
      class DiskFull < Refused; end

      # The broker is about to stop.
      class Draining < Refused; end

      # The broker's storage has failed.
      class StorageFailed < Refused; end

      # The broker heard nothing for two heartbeats.
      class Idle < Refused; end

      # There are too many connections, subscriptions or queues.
      class LimitReached < Refused; end

      # Opened again, so that the table stands behind the classes in it.
      class Refused
        BY_CODE = {
          Wire::Code::MALFORMED => [Malformed, "the broker could not understand a frame", "this client and the broker do not fit together"],
          Wire::Code::UNEXPECTED => [Unexpected, "the broker did not expect this frame", "this client and the broker do not fit together"],
          Wire::Code::VERSION => [WrongVersion, "the broker speaks no version of the protocol that this client speaks", "bring both to the same version"],
          Wire::Code::UNAUTHORIZED => [Unauthorized, "the broker does not accept these credentials", "give the client a secret or a token that the broker knows"],
          Wire::Code::FORBIDDEN => [Forbidden, "this client may not do this with this queue", nil],
          Wire::Code::FENCED => [Fenced, "another client has connected under this identity", "give each client an identity of its own"],
          Wire::Code::TOO_BIG => [TooBig, "this is larger than the broker takes", nil],
          Wire::Code::INVALID => [Invalid, "a field has a value that the broker does not allow", nil],
          Wire::Code::NO_SUCH_QUEUE => [NoSuchQueue, "there is no such queue", nil],
          Wire::Code::NO_SUCH_MESSAGE => [NoSuchMessage, "there is no such message", nil],
          Wire::Code::NO_SUCH_SUBSCRIPTION => [NoSuchSubscription, "there is no such subscription", nil],
          Wire::Code::STALE => [Stale, "the lease of this delivery has ended: the message is somebody else's", nil],
          Wire::Code::LEVEL => [NoSuchLevel, "this broker does not keep messages at this level", nil],
          Wire::Code::SEQUENCE => [OutOfSequence, "the number of this message is too far ahead of what is settled", nil],
          Wire::Code::QUEUE_FULL => [QueueFull, "the queue is full", nil],
          Wire::Code::OVERLOADED => [Overloaded, "the broker is overloaded", nil],
          Wire::Code::DISK_FULL => [DiskFull, "the broker's disk is full", nil],
          Wire::Code::DRAINING => [Draining, "the broker is about to stop", nil],
          Wire::Code::FAILED => [StorageFailed, "the broker's storage has failed", nil],
          Wire::Code::IDLE => [Idle, "the broker heard nothing for too long", nil],
          Wire::Code::LIMIT => [LimitReached, "there are too many connections, subscriptions, queues or identities", nil]
        }.to_h do |code, (type, usual, advice)|
          type.usual = usual
          type.advice = advice
          [code, type]
        end.freeze
        private_constant :BY_CODE
      end
    end
  end
end
