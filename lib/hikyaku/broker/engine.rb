# frozen_string_literal: true

module Hikyaku
  module Broker
    # The contract of a broker's engine: queues, messages, leases and sessions, free of sockets. What it speaks is
    # docs/protocol.md; what it keeps, docs/journal.md. A driver (a server, a test) owns sockets, clock and threads and moves
    # the bytes:
    #
    #     session = engine.connect(address: "127.0.0.1", now: now)
    #     engine.receive(session, bytes, now:, wall:)       whole frames are done at once, the rest is kept
    #     engine.tick(now:, wall:)                          leases, delays, heartbeats
    #     engine.commit(wall:)                              the end of a turn: what was appended is written
    #     while (session = engine.next_ready)
    #       bytes = engine.take(session, 65_536)
    #       engine.wrote(session, socket_of(session).write(bytes))
    #     end
    #     engine.work                                       what may take long: fdatasync, new segments; or in threads, by `sync`, `make_space`
    #
    # `now` is seconds of a clock that only goes forward, `wall` milliseconds since 1970. Engines are not thread-safe.
    # `test/contracts/broker_contract.rb` runs over every engine. hk_broker.h is the same contract in C.
    module Engine
      # Bytes of the largest record of an identity: its head, its fields, 255 bytes of name, 512 of the map, and up to a multiple of 8.
      IDENTITY_BYTES = 816
      # Bytes of a segment where none are given.
      SEGMENT_BYTES = 32 * 1024 * 1024
      # Bytes of a segment for its header, BOOT, END, the name of the queue, the fields and words of the message, and DROPPED.
      BESIDE_MESSAGE = 2560
      private_constant :IDENTITY_BYTES, :SEGMENT_BYTES, :BESIDE_MESSAGE

      # Every segment repeats the identities that are remembered: they have half of it.
      #
      # @param segment_bytes [Integer, nil] nil or 0: the usual size
      # @return [Integer] how many there may be
      def self.identities_most(segment_bytes)
        segment_of(segment_bytes) / 2 / IDENTITY_BYTES
      end

      # @param segment_bytes [Integer, nil]
      # @param identities [Integer] that may be remembered
      # @return [Integer] bytes of properties and payload that fit into a segment beside so many identities, whatever else it begins with
      def self.message_most(segment_bytes, identities)
        segment_of(segment_bytes) - BESIDE_MESSAGE - identities * IDENTITY_BYTES
      end

      def self.segment_of(bytes) = bytes.to_i.zero? ? SEGMENT_BYTES : bytes
      private_class_method :segment_of

      # @param wanted [Integer, nil] nil or 0: nothing is asked for
      # @param segment_bytes [Integer, nil]
      # @return [void]
      # @raise [ArgumentError] they would not fit into a segment
      def self.check_identities(wanted, segment_bytes)
        most = identities_most(segment_bytes)
        return if wanted.to_i <= most
        raise ArgumentError, "max_identities is #{wanted}, but half a segment holds #{most}: give max_identities a lower value, or segment_bytes a higher one"
      end

      # @!method initialize(storage: nil, now:, wall:, **limits)
      #   @param storage [String, nil] the journal's folder, which exists; nil: level memory alone
      #   @see RubyEngine#initialize

      # @!method close(now:, wall:)
      #   The orderly end: messages of level memory are written down, too, and the journal is closed.
      #   @return [void]

      # @!method drop_dead
      #   Lets go of everything and touches no file, as a crash would leave it.
      #   @return [void]

      # @!method connect(now:, address: "")
      #   @return [Object] a session
      #   @raise [TooManyConnections]

      # @!method receive(session, bytes, now:, wall:)
      #   @param bytes [String] as they came: any part of frames
      #   @return [Boolean] false when nothing more is to be read from it

      # @!method disconnect(session, now:, wall:)
      #   The connection is gone: what was out comes back.
      #   @return [void]

      # @!method full?(session)
      #   @return [Boolean] it has as many unanswered requests as it may: read nothing from it for now

      # @!method over?(session)
      #   @return [Boolean] nothing more is to be read, and everything was taken: close it

      # @!method next_ready
      #   @return [Object, nil] a session that has something to be sent and is not blocked

      # @!method take(session, max_bytes)
      #   @return [String] what is to be sent next; stays taken until `wrote`

      # @!method wrote(session, count)
      #   @param count [Integer] bytes that were sent; fewer than taken: it is blocked until `writable`
      #   @return [void]

      # @!method writable(session)
      #   @return [void]

      # @!method next_auth_request
      #   @return [AuthRequest, nil] the next HELLO that is to be authenticated; nil for an engine that is `open`

      # @!method permit(serial, permissions, until_ms: nil, now:, wall:)
      #   @param serial [Integer] of the session: AuthRequest#serial
      #   @param permissions [Array<Permission>]
      #   @return [Boolean] false: the session is gone

      # @!method refuse(serial, sentence)
      #   @return [Boolean]

      # @!method tick(now:, wall:)
      #   @return [void]

      # @!method next_tick
      #   @return [Float, nil] when it wants to be ticked, on the clock of `now`

      # @!method commit(wall:)
      #   @return [void]
      #   @raise [StorageFailed] after which it takes nothing any more

      # @!method work
      #   Runs what may take long here and now, until there is nothing left, and acknowledges what is synced.
      #   @return [void]

      # @!method sync_wanted?
      #   @return [Boolean] whether somebody waits for the disk

      # @!method sync
      #   What `work` does for the disk, a piece of it, in any thread; the next `commit` acknowledges what is synced.
      #   @return [void]

      # @!method space_wanted?
      #   @return [Boolean] whether segments are to be made or removed

      # @!method make_space
      #   What `work` does for that, in any thread, which may be another than that of `sync`.
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
