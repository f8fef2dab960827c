# frozen_string_literal: true

module Hikyaku
  module Broker
    # The contract of a broker's engine: queues, messages, leases and sessions, free of sockets. What it speaks is
    # docs/protocol.md; what it keeps, docs/journal.md. A driver (a server, a test) owns sockets, clock and threads and moves
    # the bytes:
    #
    #     session = engine.connect(address: "127.0.0.1", now: now)
    #     engine.receive(session, bytes, now:, wall:)       complete frames are processed, the rest is kept
    #     engine.tick(now:, wall:)                          leases, delays, heartbeats
    #     engine.commit(wall:)                              the end of a turn: what was appended is written
    #     while (session = engine.next_ready)
    #       bytes = engine.take(session, 65_536)
    #       engine.wrote(session, socket_of(session).write(bytes))
    #     end
    #     engine.work                                       fdatasync, new segments; or in threads, by `sync` and `make_space`
    #
    # `now` is seconds of the monotonic clock, `wall` milliseconds since 1970. Engines are not thread-safe.
    # `test/contracts/broker_contract.rb` runs over every engine. hk_broker.h is the same contract in C.
    module Engine
      # Bytes of the largest record of an identity: its head, its fields, 255 bytes of name, 512 of the map, and up to a multiple of 8.
      IDENTITY_BYTES = 816
      # Default bytes of a segment.
      SEGMENT_BYTES = 32 * 1024 * 1024
      # Bytes of a segment for its header, BOOT, END, the name of the queue, the fields and the reason of the message, and DROPPED.
      BESIDE_MESSAGE = 2560
      private_constant :IDENTITY_BYTES, :SEGMENT_BYTES, :BESIDE_MESSAGE

      # Every segment repeats the remembered identities, which may take half of it.
      #
      # @param segment_bytes [Integer, nil] nil or 0: the default
      # @return [Integer] how many identities the broker may remember
      def self.max_identities(segment_bytes)
        segment_of(segment_bytes) / 2 / IDENTITY_BYTES
      end

      # @param segment_bytes [Integer, nil]
      # @param identities [Integer] that may be remembered
      # @return [Integer] bytes of properties and payload that fit into a segment beside so many identities
      def self.max_message_bytes(segment_bytes, identities)
        segment_of(segment_bytes) - BESIDE_MESSAGE - identities * IDENTITY_BYTES
      end

      def self.segment_of(bytes) = bytes.to_i.zero? ? SEGMENT_BYTES : bytes
      private_class_method :segment_of

      # @param wanted [Integer, nil] nil or 0: no number is set
      # @param segment_bytes [Integer, nil]
      # @return [void]
      # @raise [ArgumentError] half a segment cannot hold them
      def self.check_identities(wanted, segment_bytes)
        most = max_identities(segment_bytes)
        return if wanted.to_i <= most
        raise ArgumentError, "max_identities is #{wanted}, but half a segment holds #{most}: give max_identities a lower value, or segment_bytes a higher one"
      end

      # @!method initialize(storage: nil, now:, wall:, **limits)
      #   @param storage [String, nil] the journal's folder, which exists; nil: level memory alone
      #   @see RubyEngine#initialize

      # @!method close(now:, wall:)
      #   Writes messages of level memory as well, and closes the journal.
      #   @return [void]

      # @!method abort
      #   Releases everything and writes nothing, as in a crash.
      #   @return [void]

      # @!method connect(now:, address: "")
      #   @return [Object] a session
      #   @raise [TooManyConnections]

      # @!method receive(session, bytes, now:, wall:)
      #   @param bytes [String] any part of the stream
      #   @return [Boolean] false: read no more from this session

      # @!method disconnect(session, now:, wall:)
      #   The connection is closed: unsettled messages return to their queues.
      #   @return [void]

      # @!method full?(session)
      #   @return [Boolean] it has as many unanswered requests as it may have: pause reading

      # @!method finished?(session)
      #   @return [Boolean] it has ended and its output was taken: close the connection

      # @!method next_ready
      #   @return [Object, nil] a session that has output and is not blocked

      # @!method take(session, max_bytes)
      #   @return [String] its next output, which is fixed until `wrote`

      # @!method wrote(session, count)
      #   @param count [Integer] bytes that were written; fewer than taken: the session is blocked until `writable`
      #   @return [void]

      # @!method writable(session)
      #   @return [void]

      # @!method next_auth_request
      #   @return [AuthRequest, nil] the next HELLO that is to be authenticated; nil for an engine that is `open`

      # @!method permit(serial, permissions, until_ms: nil, now:, wall:)
      #   @param serial [Integer] of the session: AuthRequest#serial
      #   @param permissions [Array<Permission>]
      #   @return [Boolean] false: the session has ended

      # @!method refuse(serial, sentence)
      #   @return [Boolean]

      # @!method tick(now:, wall:)
      #   @return [void]

      # @!method next_tick
      #   @return [Float, nil] when the next `tick` is due, on the clock of `now`

      # @!method commit(wall:)
      #   @return [void]
      #   @raise [StorageFailed] the engine accepts nothing more

      # @!method work
      #   Runs all work that waits for the disk in the calling thread, and acknowledges what is synced.
      #   @return [void]

      # @!method sync_wanted?
      #   @return [Boolean] whether requests wait for fdatasync

      # @!method sync
      #   Runs fdatasync once, in any thread. The next `commit` acknowledges what is synced.
      #   @return [void]

      # @!method space_wanted?
      #   @return [Boolean] whether segments are to be made or removed

      # @!method make_space
      #   Makes or removes one segment, in any thread, which may be another than that of `sync`.
      #   @return [void]

      # @!method drain(retry_after_ms)
      #   @return [void]

      # @!method drained?
      #   @return [Boolean]

      # @!method stats
      #   @return [Hash{Symbol => Object}] figures by the names of hk_broker_stats_t

      # @!method queues(wall:)
      #   @return [Array<Hash>] figures of each queue by the names of hk_queue_stats_t
    end
  end
end
