# frozen_string_literal: true

require "json"
require_relative "../support/clock"
require_relative "../support/secret"
require_relative "address"
require_relative "level"
require_relative "wire"
require_relative "client/connection"
require_relative "client/errors"
require_relative "client/identity"
require_relative "client/message"
require_relative "client/pending"
require_relative "client/receiver"
require_relative "client/send_request"
require_relative "client/subscription"

module Hikyaku
  module Broker
    # A client of the broker (docs/protocol.md): it sends and receives messages. Any number of threads and fibers may share it.
    #
    #     Hikyaku::Broker::Client.open do |client|
    #       client.send_message("resize", "photo.jpg", level: :synced)
    #       client.subscribe("resize") { |delivery| resize(delivery.payload) }.join
    #     end
    #
    # After a broken connection it reconnects, subscribes again, and sends unacknowledged messages again under the same numbers, so that
    # the broker neither misses a message nor accepts one twice. In a forked child it opens a connection of its own, under another identity;
    # receivers and deliveries stay with the parent.
    class Client
      include Support::Clock

      # Queries of docs/protocol.md, section 9.
      QUERIES = {queues: 1, explain: 2, dead: 3, replay: 4, drop: 5, segments: 6, sessions: 7, purge: 8, identities: 16, drop_identity: 17}.freeze
      # Kinds of destinations.
      KINDS = {queue: 0, client: 1}.freeze
      private_constant :QUERIES, :KINDS

      class << self
        # Makes a client and connects it. With a block the client is closed when the block returns.
        #
        # @param address [String, Address, nil] see {#initialize}
        # @param options [Hash] see {#initialize}
        # @yieldparam client [Client]
        # @return [Client, Object] the client, or what the block returns
        # @raise [Unreachable, Refused, ConfigError]
        def open(address = nil, **options)
          client = new(address, **options)
          return client unless block_given?
          begin
            yield client
          ensure
            client.close
          end
        end
      end

      # @return [Address]
      attr_reader :address

      # @param address [String, Address, nil] `unix:PATH` or `tcp://HOST:PORT`; nil: HIKYAKU_BROKER_ADDRESS, or the default socket
      # @param identity [String, nil] the name by which other clients address this one, and under which its messages are numbered. No two
      #   clients may share it. nil: a generated one, if the token permits it; empty: none, so that the outcome of a message is unknown when
      #   the connection breaks
      # @param secret [String, nil] the broker's secret
      # @param token [String, #call, nil] an access token, or a callable that returns one for each connection
      # @param heartbeat [Numeric] seconds between signs of life; 0: none
      # @param open_timeout [Numeric, nil] seconds for which the first connection is tried; nil: without a limit
      # @param timeout [Numeric, nil] seconds to wait for answers, where a method is given no other; nil: without a limit
      # @param max_frame [Integer] bytes of the largest frame that the client accepts
      # @param agent [String, nil] name and version of the program, as `hikyaku sessions` shows them
      # @param on_error [#call, nil] is called with the reason when a connection or a subscription ends, in a thread of the client
      # @raise [Unreachable] there is no broker
      # @raise [Refused] the broker refuses this client
      # @raise [ConfigError] the address is invalid, or the secret or the token is empty
      def initialize(address = nil, identity: nil, secret: nil, token: nil, heartbeat: 20, open_timeout: 10, timeout: 60,
        max_frame: 64 * 1024 * 1024, agent: nil, on_error: nil)
        raise ArgumentError, "give a secret or a token, not both" if secret && token
        raise ConfigError, "the secret is empty: give the broker's secret, or nil where the broker has none" if secret && Secret.empty?(secret)
        raise ConfigError, "the token is empty: give an access token, or nil where the broker needs none" if token.is_a?(String) && Secret.empty?(token)
        raise ArgumentError, "an identity has at most 255 bytes, not #{identity.bytesize}" if identity && identity.bytesize > 255
        @address = address ? Address.parse(address) : Address.default
        @identity = identity
        @credentials = {secret: secret, token: token, heartbeat: Wire.milliseconds(heartbeat), agent: agent}
        @options = {max_frame: max_frame, on_error: on_error}
        @open_timeout = open_timeout
        @timeout = timeout
        @mutex = Mutex.new
        @subscriptions = []
        connect(@identity)
      end

      # @return [String] the name by which other clients address this one; empty: it has none
      def identity
        connection
        @current_identity.name
      end

      # Sends a message, and waits for its acknowledgement.
      #
      # @param queue [String] name of the queue, or with `to: :client` the identity of a client
      # @param payload [String, Object] any other object than a String becomes JSON
      # @param to [Symbol] `:queue` or `:client`
      # @param level [Symbol, nil] the level that the message is to reach: `:memory`, `:written`, `:synced`; nil: the broker's default
      # @param priority [Integer] 0 to 9; the highest is delivered first
      # @param delay [Numeric] seconds before which it is not delivered
      # @param ttl [Numeric, nil] seconds after which it is not delivered; nil: it does not expire
      # @param properties [Hash{#to_s => #to_s}] the broker passes them on unchanged
      # @param timeout [Numeric, nil] seconds
      # @return [Receipt]
      # @raise [Refused] the broker refuses the message
      # @raise [Unreachable] the message was not sent in time, and will not be sent
      # @raise [OutcomeUnknown] the message was sent, and no answer came in time
      def send_message(queue, payload, to: :queue, level: nil, priority: 4, delay: 0, ttl: nil, properties: {}, timeout: @timeout)
        connection = self.connection
        request = post(connection, queue, [Message.new(payload, properties: properties)], fields(to, level, priority, delay, ttl), timeout: timeout)
        connection.flush
        await(connection, request, timeout)
      end

      # Sends a message without waiting for its acknowledgement, which is the value of the result.
      #
      # @param queue [String]
      # @param payload [String, Object]
      # @param to [Symbol]
      # @param level [Symbol, nil]
      # @param priority [Integer]
      # @param delay [Numeric]
      # @param ttl [Numeric, nil]
      # @param properties [Hash{#to_s => #to_s}]
      # @param wait [Boolean] waits while as many messages as the broker permits are unacknowledged; false: raises WindowFull
      # @param timeout [Numeric, nil] seconds of that wait
      # @return [Pending]
      # @raise [WindowFull, Unreachable, TooBig]
      # @see #send_message
      def send_async(queue, payload, to: :queue, level: nil, priority: 4, delay: 0, ttl: nil, properties: {}, wait: true, timeout: @timeout)
        connection = self.connection
        request = post(connection, queue, [Message.new(payload, properties: properties)], fields(to, level, priority, delay, ttl), wait: wait, timeout: timeout)
        connection.flush_later
        request.pending
      end

      # Sends messages together, and waits for their acknowledgement. The broker accepts as many as it can. When it refuses one for a temporary
      # reason ({Refused#retryable?}), it refuses the messages behind it in the same frame (of up to 1,024 messages), too, so that a resend keeps
      # their order.
      #
      # @param queue [String]
      # @param messages [Array<Message, Object>] messages, or payloads
      # @param to [Symbol]
      # @param level [Symbol, nil]
      # @param priority [Integer]
      # @param delay [Numeric]
      # @param ttl [Numeric, nil]
      # @param timeout [Numeric, nil] seconds
      # @return [Array<Receipt, Refused>] one for each message, in order
      # @raise [Unreachable, OutcomeUnknown] no answer came in time
      # @see #send_message
      def send_batch(queue, messages, to: :queue, level: nil, priority: 4, delay: 0, ttl: nil, timeout: @timeout)
        connection = self.connection
        fields = fields(to, level, priority, delay, ttl)
        requests = batches(connection, queue, messages.map { |message| Message.of(message) }, fields, timeout)
        connection.flush
        requests.flat_map { |request| results(connection, request, timeout) }
      end

      # Receives with threads of its own. Each acknowledges a delivery when the block returns, and rejects it when the block raises
      # ({Receiver#work}).
      #
      # @param queue [String, nil] nil: the client's own queue, to which other clients send with `to: :client`
      # @param concurrency [Integer] threads
      # @param credit [Integer] messages that the client may hold unsettled; those that wait here are not available to other receivers
      # @param credit_bytes [Integer] the same in bytes; 0: any number
      # @param lease [Numeric, nil] seconds; nil: the broker's default. The client renews it while the block runs
      # @param report_start [Boolean] tells the broker when work on a message starts, so that it knows which message was processed when this process died
      # @param retry_in [Numeric, #call] seconds before a rejected message is delivered again, or a callable that returns them for a delivery
      # @param on_error [#call, nil] gets each error of the block, and the delivery ({Receiver#work})
      # @param timeout [Numeric, nil, false] seconds that the block may run before its message is given to another receiver ({Receiver#work}); nil or
      #   false: any number
      # @yieldparam delivery [Delivery]
      # @return [Subscription]
      # @raise [Refused, Unreachable]
      def subscribe(queue = nil, concurrency: 1, credit: 200, credit_bytes: 0, lease: nil, report_start: true,
        retry_in: Receiver::DEFAULT_RETRY_DELAY, on_error: nil, timeout: Receiver::DEFAULT_TIMEOUT, &block)
        raise ArgumentError, "subscribe needs a block; use receiver to take deliveries one at a time" unless block
        receiver = receiver(queue, credit: credit, credit_bytes: credit_bytes, lease: lease, report_start: report_start, timeout: timeout)
        subscription = Subscription.new(receiver, concurrency: concurrency, retry_in: retry_in, on_error: on_error, &block)
        @mutex.synchronize { @subscriptions << subscription }
        subscription
      end

      # Receives deliveries one at a time, at the caller's request.
      #
      # @param queue [String, nil] nil: the client's own queue
      # @param credit [Integer] messages that the client may hold unsettled
      # @param credit_bytes [Integer] the same in bytes; 0: any number
      # @param lease [Numeric, nil] seconds; nil: the broker's default
      # @param report_start [Boolean] tells the broker when a message is taken, so that it knows which message was processed when this process died
      # @param timeout [Numeric, nil, false] seconds that a block of {Receiver#work} may run, and after which waiting deliveries are released when the
      #   program takes none; nil or false: any number
      # @return [Receiver]
      # @raise [Refused, Unreachable]
      def receiver(queue = nil, credit: 200, credit_bytes: 0, lease: nil, report_start: true, timeout: Receiver::DEFAULT_TIMEOUT)
        raise ArgumentError, "a client without an identity has no queue of its own" if queue.nil? && identity.empty?
        raise ArgumentError, "timeout is seconds above 0, or nil for no limit, not #{timeout.inspect}" if timeout && !(timeout.is_a?(Numeric) && timeout.positive?)
        lease = Wire.milliseconds(lease || 0)
        consumer = connection.consumer
        receiver = Receiver.new(consumer, number: next_subscription, queue: queue || identity, own: queue.nil?, credit: credit,
          credit_bytes: credit_bytes, lease: lease, report_start: report_start, timeout: timeout)
        consumer.subscribe(receiver)
        receiver.await(@timeout)
      end

      # @param prefix [String] of the names
      # @param kind [Symbol] `:queue`, or `:client` for the queues of clients
      # @param limit [Integer] how many at most
      # @return [Array<Hash{String => Object}>] the queues with their figures
      # @raise [Failure]
      def queues(prefix = "", kind: :queue, limit: 1000) = query(:queues, name: prefix, kind: kind, limit: limit).fetch("queues", [])

      # @param message [Integer] its id
      # @return [Hash{String => Object}] the state of the message, and why it waits
      # @raise [NoSuchMessage, Failure]
      def explain(message) = query(:explain, number: message)

      # @param queue [String]
      # @param kind [Symbol] `:queue` or `:client`
      # @return [Hash{String => Object}] why the oldest message of the queue waits
      # @raise [NoSuchQueue, Failure]
      def explain_queue(queue, kind: :queue) = query(:explain, name: queue, kind: kind)

      # @param queue [String]
      # @param kind [Symbol]
      # @param after [Integer] id of a message; the list starts behind it
      # @param limit [Integer] how many at most
      # @return [Array<Hash{String => Object}>] the dead letters of the queue
      # @raise [Failure]
      def dead(queue, kind: :queue, after: 0, limit: 100) = query(:dead, name: queue, kind: kind, number: after, limit: limit).fetch("dead", [])

      # Returns dead letters to the queue as if they were new.
      #
      # @param queue [String]
      # @param message [Integer, nil] its id; nil: all
      # @param kind [Symbol]
      # @return [Integer] how many
      # @raise [Failure]
      def replay(queue, message = nil, kind: :queue) = query(:replay, name: queue, kind: kind, number: message || 0).fetch("count")

      # Drops dead letters.
      #
      # @param queue [String]
      # @param message [Integer, nil] its id; nil: all
      # @param kind [Symbol]
      # @return [Integer] how many
      # @raise [Failure]
      def drop(queue, message = nil, kind: :queue) = query(:drop, name: queue, kind: kind, number: message || 0).fetch("count")

      # Drops all messages that wait in a queue.
      #
      # @param queue [String]
      # @param kind [Symbol]
      # @return [Integer] how many
      # @raise [Failure]
      def purge(queue, kind: :queue) = query(:purge, name: queue, kind: kind).fetch("count")

      # @return [Array<Hash{String => Object}>] segments of the journal, and which message holds each oldest one
      # @raise [Failure]
      def segments = query(:segments).fetch("segments", [])

      # @return [Array<Hash{String => Object}>] the connected clients
      # @raise [Failure]
      def sessions = query(:sessions).fetch("sessions", [])

      # @param prefix [String] of the identities
      # @param limit [Integer] how many at most
      # @return [Array<Hash{String => Object}>] the identities whose numbered messages the broker remembers: those without a
      #   connection, the longest first, then those with one
      # @raise [Failure]
      def identities(prefix = "", limit: 1000) = query(:identities, name: prefix, limit: limit).fetch("identities", [])

      # Makes the broker forget an identity: its epoch, and which of its numbered messages it has accepted.
      #
      # @param identity [String] no client may be connected with it
      # @return [Boolean] the broker had remembered it
      # @raise [Refused] a client is connected with it
      # @raise [Failure]
      def drop_identity(identity) = query(:drop_identity, name: identity).fetch("count").positive?

      # Measures the round-trip time.
      #
      # @return [Float] seconds
      # @raise [Failure]
      def ping
        began = now
        connection.request(@timeout) { |id| Wire.ping(id: id) }
        now - began
      end

      # @return [Boolean]
      def connected? = connection.connected?

      # Stops in order: it receives nothing more, releases the deliveries that no block has begun with, and waits for the blocks that run and
      # for the acknowledgements of what was sent. The broker then delivers unsettled messages again, without counting a failure. It forgets an
      # identity that was generated for this client.
      #
      # @param timeout [Numeric, nil] seconds; nil: without a limit
      # @return [Boolean] all of that was done in time
      def close(timeout: 30)
        connection = @connection
        return true if @owner != Process.pid || connection.failure
        deadline = timeout && now + timeout
        connection.drain
        done = @mutex.synchronize { @subscriptions.dup }.map { |subscription| ended?(subscription, deadline) }.all?
        connection.close(deadline) && done
      end

      # @return [Boolean] the client was closed, or the broker has refused it for good
      def closed? = @owner == Process.pid && !@connection.failure.nil?

      # @return [String] without credentials
      def inspect = "#<#{self.class.name} #{@address} as #{@current_identity.name.inspect}>"

      private

      # A forked child has a connection of its own.
      def connection
        return @connection if @owner == Process.pid
        @mutex.synchronize do
          next if @owner == Process.pid
          @connection.abandon
          @subscriptions = []
          connect(("" if @identity == ""))
        end
        @connection
      end

      def connect(identity)
        @last_subscription = 0
        @current_identity = Identity.new(identity, **@credentials)
        connection = @connection = Connection.new(@address, identity: @current_identity, **@options)
        @owner = Process.pid
        connection.open(@open_timeout)
      rescue
        connection&.close(now)
        raise
      end

      def next_subscription
        @mutex.synchronize { @last_subscription = @last_subscription % 65_535 + 1 }
      end

      def fields(to, level, priority, delay, ttl)
        raise ArgumentError, "priority is a whole number from 0 to 9, not #{priority.inspect}" unless priority.is_a?(Integer) && priority.between?(0, 9)
        {kind: kind(to), level: Level.number(level), priority: priority, delay: delay.zero? ? 0 : Wire.milliseconds(delay),
         time_to_live: ttl ? [Wire.milliseconds(ttl), 1].max : 0}
      end

      def kind(name) = KINDS.fetch(name) { raise ArgumentError, "expected :queue or :client, got #{name.inspect}" }

      # @return [SendRequest, nil] nil: the messages need a request each
      def post(connection, queue, messages, fields, timeout:, wait: true)
        raise ArgumentError, "a name has 1 to 255 bytes: #{queue.inspect}" unless queue.is_a?(String) && queue.bytesize.between?(1, 255)
        request = SendRequest.new(Pending.new(connection.lock), queue, messages, numbered: !@current_identity.none?, fields: fields)
        request if connection.post(request, wait: wait, timeout: timeout)
      end

      # @return [Array<SendRequest, Array<Refused>>] a request, or the errors of messages that are too large
      def batches(connection, queue, messages, fields, timeout)
        requests = []
        until messages.empty?
          batch = messages.shift(batch_size(connection, queue, messages))
          request = post_batch(connection, queue, batch, fields, timeout)
          request ? requests << request : messages.unshift(*batch)
        end
        requests
      end

      def post_batch(connection, queue, batch, fields, timeout)
        post(connection, queue, batch, fields, timeout: timeout)&.tap { connection.flush_later }
      rescue Refused => error
        Array.new(batch.size) { error }
      end

      # As many messages as the broker accepts in one frame; one where only numbers are left that are not consecutive.
      def batch_size(connection, queue, messages)
        return 1 unless connection.batches?
        max, bytes = connection.batch_limits
        remaining = bytes - SendRequest.batch_bytes(queue, [])
        fitting = messages.first(max).take_while { |message| (remaining -= SendRequest.item_bytes(message)) >= 0 }
        [fitting.size, 1].max
      end

      def results(connection, request, timeout)
        return request if request.is_a?(Array)
        Array(await(connection, request, timeout))
      rescue Refused => error
        Array.new(request.count) { error }
      end

      def await(connection, request, timeout)
        request.pending.value(timeout)
      rescue OutcomeUnknown
        raise if request.pending.done? || !connection.withdraw(request)
        raise Unreachable, "the message was not sent within #{timeout} seconds: there is no connection to the broker at #{@address}"
      end

      def query(what, name: "", kind: :queue, limit: 0, number: 0)
        kind = kind(kind)
        JSON.parse(connection.request(@timeout) { |id| Wire.query(what: QUERIES.fetch(what), id: id, kind: kind, name: name, limit: limit, number: number) })
      end

      def ended?(subscription, deadline)
        !subscription.join(deadline && [deadline - now, 0].max).nil?
      rescue
        # The subscription has ended with an error, which {Subscription#join} raises.
        true
      end
    end
  end
end
