# frozen_string_literal: true

require "securerandom"
require_relative "../hub/native_engine"
require_relative "../log/journal/errors"
require_relative "../log/journal/reading"
require_relative "engine"
require_relative "errors"
require_relative "auth_request"
require_relative "level"
require_relative "permission"

module Hikyaku
  module Broker
    # The engine in C, with the contract, the protocol and the files of the RubyEngine. A Hikyaku::Server::NativeReactor may carry its bytes without Ruby:
    # then other threads may call `stats` and `queues` alone. In a forked child it is closed, because the journal is the parent's.
    class NativeEngine
      include Engine

      LIMITS = %i[segment_bytes max_memory max_storage max_frame heartbeat_least heartbeat_most window_messages window_bytes
        lease lease_most max_failures max_crashes max_queue_messages max_queue_bytes max_queues max_identities
        max_sessions max_subscriptions queue_idle producer_idle].freeze
      # Lanes of the work that waits for the disk: hk_lane_t.
      SYNC = 0
      SPACE = 1
      private_constant :LIMITS, :SYNC, :SPACE

      def initialize(storage: nil, level: nil, open: false, now: Process.clock_gettime(Process::CLOCK_MONOTONIC),
        wall: Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond), secret: SecureRandom.bytes(16), report: nil, **limits)
        unknown = limits.keys - LIMITS
        raise ArgumentError, "unknown limits: #{unknown.join(", ")}" if unknown.any?
        Engine.check_identities(limits[:max_identities], limits[:segment_bytes]) if storage
        @storage = storage&.to_s
        @sessions = {}
        @last_number = 0
        level ||= storage ? Level::WRITTEN : Level::MEMORY
        options = {storage: @storage, level: level, open: open, secret: secret, **limits}
        status, trouble = @storage ? Log::Journal::Reading.of(@storage, report) { |reading| _open(options, now, wall, reading) } : _open(options, now, wall, nil)
        refuse_to_open(status, trouble) if status
      end

      def close(now:, wall:) = check(_close(now, wall))

      def abort = _drop_dead

      def connect(now:, address: "")
        number = @last_number += 1
        session = _connect(address, number, now)
        raise TooManyConnections, "the broker has as many sessions as it may have" unless session
        @sessions[number] = session.known_as(number)
      end

      def receive(session, bytes, now:, wall:) = _receive(session, bytes, now, wall)

      def disconnect(session, now:, wall:)
        return unless @sessions.delete(session.number)
        _disconnect(session, now, wall)
      end

      def full?(session) = _full(session)

      def finished?(session) = _over(session)

      def next_ready
        number = _next_ready
        number && @sessions.fetch(number)
      end

      def take(session, max_bytes) = _take(session, max_bytes)

      def wrote(session, count) = _wrote(session, count)

      def writable(session) = _writable(session)

      def next_auth_request
        serial, identity, credentials, kind, agent, address = _asking
        serial && AuthRequest.new(serial: serial, identity: identity, credentials: credentials, kind: kind, agent: agent, address: address)
      end

      def permit(serial, permissions, now:, wall:, until_ms: nil)
        _permit(serial, permissions.map { |permission| [permission.pattern, permission.rights] }, until_ms, now, wall)
      end

      def refuse(serial, sentence) = _refuse(serial, sentence)

      def tick(now:, wall:) = _tick(now, wall)

      def next_tick = _next_tick

      def commit(wall:) = check(_commit(wall))

      def work = check(_work)

      def sync_wanted? = _wanted(SYNC)

      def sync = _run(SYNC)

      def space_wanted? = _wanted(SPACE)

      def make_space = _run(SPACE)

      def drain(retry_after_ms) = _drain(retry_after_ms)

      def drained? = _drained

      def stats = _stats(!@storage.nil?)

      def queues(wall:) = _queues(wall)

      def inspect = "#<#{self.class.name}#{" #{@storage}" if @storage}>"

      def self.failure(trouble)
        sentence, = trouble
        StorageFailed.new(sentence.empty? ? "the storage has failed" : sentence)
      end

      # A connection of a client.
      class Session
        attr_reader :number

        def known_as(number)
          @number = number
          self
        end

        def ended? = _ended

        def inspect = "#<#{self.class.name} #{number}#{" ended" if ended?}>"
      end

      private

      def check(trouble)
        raise self.class.failure(trouble) if trouble
      end

      def refuse_to_open(status, trouble)
        sentence, _, _, errno = trouble
        raise Log::Journal::Full.none(@storage, SystemCallError.new(errno)) if sentence.start_with?("making a segment")
        raise Log::Journal.refusal(@storage, status, trouble) || SystemCallError.new(sentence, errno)
      end
    end
  end
end
