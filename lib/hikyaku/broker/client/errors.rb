# frozen_string_literal: true

require_relative "../../error"
require_relative "../wire/code"

module Hikyaku
  module Broker
    class Client
      # A request has failed.
      class Failure < StandardError
        include Error

        # A copy of an error of another thread, which gets the backtrace of the caller that waited.
        def self.again(error) = error.dup.tap { |copy| copy.set_backtrace(nil) }

        attr_reader :retry_after

        def initialize(message, retryable: false, retry_after: nil)
          super(message)
          @retryable = retryable
          @retry_after = retry_after
        end

        def retryable? = @retryable
      end

      # There was no connection in time, so the request was not sent.
      class Unreachable < Failure
        def initialize(message, retryable: true) = super
      end

      # The request was sent, and no answer came: the broker may have accepted it or not. Only the same client can send a numbered message
      # again without a duplicate; it does so by itself as long as it is open.
      class OutcomeUnknown < Failure
      end

      # The client was closed, or belongs to the parent of this forked process.
      class Closed < Failure
      end

      # As many messages as the broker permits are unacknowledged, and the caller did not want to wait.
      class WindowFull < Failure
        def initialize(message = "the broker permits no more unacknowledged messages; try again when it has acknowledged some") = super(message, retryable: true)
      end

      # A block has run for longer than the `timeout:` of {Client#subscribe}.
      class BlockTimeout < Failure
      end

      # The broker has sent something that is not part of the protocol.
      class NotUnderstood < Failure
      end

      # The broker has refused a request. Each code of docs/protocol.md, section 5, has a class below.
      class Refused < Failure
        attr_reader :code

        def self.of(code, sentence = nil, retryable: Wire::Code.later?(code), retry_after: nil)
          type = BY_CODE.fetch(code, Refused)
          message = sentence.to_s.scrub("?").strip
          message = type.default_message || "the broker has refused the request with code #{code}" if message.empty?
          type.new([message, type.advice].compact.join("; "), code: code, retryable: retryable, retry_after: retry_after)
        end

        def self.too_big(bytes, payload, max_frame)
          sizes = payload ? "the payload has #{payload} bytes; with its properties, and to this queue, it may have #{[max_frame - bytes + payload, 0].max}" :
            "the messages have #{bytes} bytes together"
          of(Wire::Code::TOO_BIG, "#{sizes}: the largest frame of the broker has #{max_frame} bytes")
        end

        class << self
          attr_accessor :default_message, :advice
        end

        def initialize(message, code:, retryable: false, retry_after: nil)
          super(message, retryable: retryable, retry_after: retry_after)
          @code = code
        end
      end

      # The messages below say what each of them means.
      class Malformed < Refused; end
      class Unexpected < Refused; end
      class WrongVersion < Refused; end
      class Unauthorized < Refused; end
      class Forbidden < Refused; end
      class Fenced < Refused; end
      class TooBig < Refused; end
      class Invalid < Refused; end
      class NoSuchQueue < Refused; end
      class NoSuchMessage < Refused; end
      class NoSuchSubscription < Refused; end
      class Stale < Refused; end
      class NoSuchLevel < Refused; end
      class OutOfSequence < Refused; end
      class QueueFull < Refused; end
      class Overloaded < Refused; end
      class DiskFull < Refused; end
      class Draining < Refused; end
      class StorageFailed < Refused; end
      class Idle < Refused; end
      class LimitReached < Refused; end

      class Refused
        BY_CODE = {
          Wire::Code::MALFORMED => [Malformed, "the broker could not parse a frame", "bring the client and the broker to compatible versions"],
          Wire::Code::UNEXPECTED => [Unexpected, "the broker did not expect this frame", "bring the client and the broker to compatible versions"],
          Wire::Code::VERSION => [WrongVersion, "the broker speaks no version of the protocol that this client speaks", "bring both to the same version"],
          Wire::Code::UNAUTHORIZED => [Unauthorized, "the broker does not accept these credentials", "give the client a secret or a token that the broker knows"],
          Wire::Code::FORBIDDEN => [Forbidden, "this client has no permission for this queue", nil],
          Wire::Code::FENCED => [Fenced, "another client has connected under this identity", "give each client an identity of its own"],
          Wire::Code::TOO_BIG => [TooBig, "the message exceeds a limit of the broker", nil],
          Wire::Code::INVALID => [Invalid, "a field has an invalid value", nil],
          Wire::Code::NO_SUCH_QUEUE => [NoSuchQueue, "the queue does not exist", nil],
          Wire::Code::NO_SUCH_MESSAGE => [NoSuchMessage, "the message does not exist", nil],
          Wire::Code::NO_SUCH_SUBSCRIPTION => [NoSuchSubscription, "the subscription does not exist", nil],
          Wire::Code::STALE => [Stale, "the lease of this delivery has ended: another receiver may have the message", nil],
          Wire::Code::LEVEL => [NoSuchLevel, "this broker does not keep messages at this level", nil],
          Wire::Code::SEQUENCE => [OutOfSequence, "the number of this message is too far above the lowest unsettled one", nil],
          Wire::Code::QUEUE_FULL => [QueueFull, "the queue is full", nil],
          Wire::Code::OVERLOADED => [Overloaded, "the broker is overloaded", nil],
          Wire::Code::DISK_FULL => [DiskFull, "the broker's disk is full", nil],
          Wire::Code::DRAINING => [Draining, "the broker is stopping", nil],
          Wire::Code::FAILED => [StorageFailed, "the broker's storage has failed", nil],
          Wire::Code::IDLE => [Idle, "the broker has received nothing for two heartbeats", nil],
          Wire::Code::LIMIT => [LimitReached, "there are too many connections, subscriptions, queues or identities", nil]
        }.to_h do |code, (type, default_message, advice)|
          type.default_message = default_message
          type.advice = advice
          [code, type]
        end.freeze
        private_constant :BY_CODE
      end
    end
  end
end
