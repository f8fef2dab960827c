# frozen_string_literal: true

require "json"
require_relative "../support/secret"
require_relative "address"
require_relative "level"
require_relative "wire"
require_relative "client/errors"
require_relative "client/hello"
require_relative "client/identity"
require_relative "client/link"
require_relative "client/message"
require_relative "client/receiver"
require_relative "client/subscription"

module Hikyaku
  module Broker
    # A client of the broker (docs/protocol.md): it sends messages and receives them, from as many threads and fibres as like to.
    #
    #     Hikyaku::Broker::Client.open do |client|
    #       client.send_message("resize", "photo.jpg", level: :synced)
    #       client.subscribe("resize") { |delivery| resize(delivery.payload) }.join
    #     end
    #
    # It connects again by itself, subscribes again, and sends again what was not acknowledged, under the numbers that it had: nothing is
    # lost, and nothing is taken twice. In a forked child it opens a connection of its own, under another identity; receivers and
    # deliveries stay the parent's.
    class Client
      # Queries of docs/protocol.md, section 9.
      QUERIES = {queues: 1, explain: 2, dead: 3, replay: 4, drop: 5, segments: 6, sessions: 7, purge: 8, identities: 16, drop_identity: 17}.freeze
      # Kinds of destinations.
      KINDS = {queue: 0, client: 1}.freeze
      # Bytes of frames beside names, properties and payload, and of each message in a SEND_BATCH.
      SEND_BYTES = 40
      PUSH_BYTES = 48
      BATCH_BYTES = 44
      ITEM_BYTES = 6
      private_constant :QUERIES, :KINDS, :SEND_BYTES, :PUSH_BYTES, :BATCH_BYTES, :ITEM_BYTES

      class << self
        # Makes a client, which has a connection. With a block it is closed at its end.
        #
        # @param address [String, Address, nil] see {#initialize}
        # @param options [Hash] see {#initialize}
        # @yieldparam client [Client]
        # @return [Client, Object] what the block returns
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

      # @param address [String, Address, nil] `unix:PATH` or `tcp://HOST:PORT`; nil: what HIKYAKU_BROKER_ADDRESS says, else the usual socket
      # @param identity [String, nil] under which others address this client, and its messages are numbered: its own alone; nil: one
      #   is made, if its token permits one; empty: none, and a message whose connection breaks is in doubt
      # @param secret [String, nil] the broker's
      # @param token [String, #call, nil] an access token, or what gives one for each connection
      # @param heartbeat [Numeric] seconds between signs of life; 0: none
      # @param open_timeout [Numeric, nil] seconds in which the first connection is tried again; nil: for ever
      # @param timeout [Numeric, nil] seconds to wait for answers, unless a method is told otherwise; nil: for ever
      # @param max_frame [Integer] bytes of the largest frame that is taken
      # @param agent [String, nil] the program, for people who look
      # @param on_error [#call, nil] is told why a connection or a subscription ended, in a thread of the client
      # @raise [Unreachable] there is no broker
      # @raise [Refused] the broker does not want this client
      # @raise [ConfigError] the address cannot be used, or the secret or the token is empty
      def initialize(address = nil, identity: nil, secret: nil, token: nil, heartbeat: 20, open_timeout: 10, timeout: 60,
        max_frame: 64 * 1024 * 1024, agent: nil, on_error: nil)
        raise ArgumentError, "give a secret or a token, not both" if secret && token
        raise ConfigError, "the secret is empty: give the broker's, or none (nil) where the broker asks for none" if secret && Secret.empty?(secret)
        raise ConfigError, "the token is empty: give one, or none (nil) where the broker asks for none" if token.is_a?(String) && Secret.empty?(token)
        raise ArgumentError, "an identity has up to 255 bytes" if identity && identity.bytesize > 255
        @address = address ? Address.parse(address) : Address.default
        @identity = identity
        @credentials = {secret: secret, token: token, heartbeat: Link.milliseconds(heartbeat), agent: agent}
        @options = {max_frame: max_frame, on_error: on_error}
        @open_timeout = open_timeout
        @timeout = timeout
        @mutex = Mutex.new
        @subscriptions = []
        connect(@identity)
      end

      # @return [String] under which others address it; empty: it has none
      def identity
        link
        @current_identity
      end

      # Sends a message, and waits for its acknowledgement.
      #
      # @param queue [String] its name, or with `to: :client` the identity of a client
      # @param payload [String, Object] anything but a String becomes JSON
      # @param to [Symbol] `:queue` or `:client`
      # @param level [Symbol, nil] what is to be acknowledged: `:memory`, `:written`, `:synced`; nil: the broker's usual
      # @param priority [Integer] 0 to 9, the highest first
      # @param delay [Numeric] seconds before which it is not delivered
      # @param ttl [Numeric, nil] seconds after which it is not delivered any more; nil: never
      # @param properties [Hash{#to_s => #to_s}] the broker hands them on as they are
      # @param timeout [Numeric, nil] seconds
      # @return [Receipt]
      # @raise [Refused] it was not taken
      # @raise [Unreachable] it was not sent in time, and will not be
      # @raise [OutcomeUnknown] it was sent, and there is no answer in time
      def send_message(queue, payload, to: :queue, level: nil, priority: 4, delay: 0, ttl: nil, properties: {}, timeout: @timeout)
        pending = post(queue, Message.new(payload, properties: properties), fields(to, level, priority, delay, ttl), soon: false, timeout: timeout)
        await(pending, timeout)
      end

      # Sends a message, and does not wait for its acknowledgement, which the answer has.
      #
      # @param queue [String]
      # @param payload [String, Object]
      # @param to [Symbol]
      # @param level [Symbol, nil]
      # @param priority [Integer]
      # @param delay [Numeric]
      # @param ttl [Numeric, nil]
      # @param properties [Hash{#to_s => #to_s}]
      # @param wait [Boolean] while as many messages as the broker permits are not acknowledged; false: WindowFull
      # @param timeout [Numeric, nil] seconds to wait so
      # @return [Pending]
      # @raise [WindowFull, Unreachable, TooBig]
      # @see #send_message
      def send_async(queue, payload, to: :queue, level: nil, priority: 4, delay: 0, ttl: nil, properties: {}, wait: true, timeout: @timeout)
        post(queue, Message.new(payload, properties: properties), fields(to, level, priority, delay, ttl), wait: wait, timeout: timeout)
      end

      # Sends messages together, and waits for their acknowledgement. Those that can be taken are taken. When one is refused for a reason
      # that may pass ({Refused#retryable?}), those that stand behind it in the same frame (of up to 1,024 messages) are refused like it: what
      # is then sent again keeps its order.
      #
      # @param queue [String]
      # @param messages [Array<Message, Object>] messages, or payloads
      # @param to [Symbol]
      # @param level [Symbol, nil]
      # @param priority [Integer]
      # @param delay [Numeric]
      # @param ttl [Numeric, nil]
      # @param timeout [Numeric, nil] seconds
      # @return [Array<Receipt, Refused>] for each message, in order
      # @raise [Unreachable, OutcomeUnknown] there is no answer in time
      # @see #send_message
      def send_batch(queue, messages, to: :queue, level: nil, priority: 4, delay: 0, ttl: nil, timeout: @timeout)
        fields = fields(to, level, priority, delay, ttl)
        rest = messages.map { |message| Message.of(message) }
        pendings = []
        until rest.empty?
          part = rest.shift(part_size(queue, rest))
          pending = post_part(queue, part, fields, timeout)
          pending ? pendings << [pending, part.size] : rest.unshift(*part)
        end
        pendings.flat_map { |pending, size| results(pending, size, timeout) }
      end

      # Receives by threads: each frees a delivery when the block has done with it, and rejects it when the block raises
      # ({Receiver#work}).
      #
      # @param queue [String, nil] nil: the client's own queue, which others reach with `to: :client`
      # @param concurrency [Integer] threads
      # @param credit [Integer] messages that may be here and not done; what waits here waits for this process
      # @param credit_bytes [Integer] the same in bytes; 0: any number
      # @param lease [Numeric, nil] seconds; nil: the broker's usual. The client renews it while the block runs
      # @param in_hand [Boolean] tells the broker when work on a message begins, so that it knows which one killed this process
      # @param retry_in [Numeric, #call] seconds before a rejected message is delivered again, or what says so for a delivery
      # @param on_error [#call, nil] is told of errors of the block, with the delivery ({Receiver#work})
      # @param timeout [Numeric, nil, false] seconds that the block may run before its message is given to another receiver ({Receiver#work}); nil or
      #   false: any number
      # @yieldparam delivery [Delivery]
      # @return [Subscription]
      # @raise [Refused, Unreachable]
      def subscribe(queue = nil, concurrency: 1, credit: 200, credit_bytes: 0, lease: nil, in_hand: true,
        retry_in: Receiver::USUAL_DELAY, on_error: nil, timeout: Receiver::USUAL_TIMEOUT, &block)
        raise ArgumentError, "subscribe takes a block; receiver gives deliveries one by one" unless block
        receiver = receiver(queue, credit: credit, credit_bytes: credit_bytes, lease: lease, in_hand: in_hand, timeout: timeout)
        subscription = Subscription.new(receiver, concurrency: concurrency, retry_in: retry_in, on_error: on_error, &block)
        @mutex.synchronize { @subscriptions << subscription }
        subscription
      end

      # Receives one by one, as one asks for them.
      #
      # @param queue [String, nil] nil: the client's own queue
      # @param credit [Integer] messages that may be here and not done
      # @param credit_bytes [Integer] the same in bytes; 0: any number
      # @param lease [Numeric, nil] seconds; nil: the broker's usual
      # @param in_hand [Boolean] tells the broker when one is taken, so that it knows which one killed this process
      # @param timeout [Numeric, nil, false] seconds that a block of {Receiver#work} may run, and after which what waits here goes back when nobody
      #   asks for it; nil or false: any number
      # @return [Receiver]
      # @raise [Refused, Unreachable]
      def receiver(queue = nil, credit: 200, credit_bytes: 0, lease: nil, in_hand: true, timeout: Receiver::USUAL_TIMEOUT)
        raise ArgumentError, "a client without an identity has no queue of its own" if queue.nil? && identity.empty?
        raise ArgumentError, "timeout is seconds above 0, or nil for no limit, not #{timeout.inspect}" if timeout && !(timeout.is_a?(Numeric) && timeout.positive?)
        lease = Link.milliseconds(lease || 0)
        link = self.link
        receiver = Receiver.new(link, number: next_number, queue: queue || identity, own: queue.nil?, credit: credit,
          credit_bytes: credit_bytes, lease: lease, in_hand: in_hand, timeout: timeout)
        link.subscribe(receiver)
        receiver.await(@timeout)
      end

      # @param prefix [String] with which the names begin
      # @param kind [Symbol] `:queue` or `:client`: those of clients
      # @param limit [Integer] how many at most
      # @return [Array<Hash{String => Object}>] the queues with their figures
      # @raise [Failure]
      def queues(prefix = "", kind: :queue, limit: 1000) = query(:queues, name: prefix, kind: kind, limit: limit).fetch("queues", [])

      # @param message [Integer] its id
      # @return [Hash{String => Object}] where it is and why it waits
      # @raise [NoSuchMessage, Failure]
      def explain(message) = query(:explain, number: message)

      # @param queue [String]
      # @param kind [Symbol] `:queue` or `:client`
      # @return [Hash{String => Object}] what stands before the oldest message of a queue
      # @raise [NoSuchQueue, Failure]
      def explain_queue(queue, kind: :queue) = query(:explain, name: queue, kind: kind)

      # @param queue [String]
      # @param kind [Symbol]
      # @param after [Integer] id of a message behind which to begin
      # @param limit [Integer] how many at most
      # @return [Array<Hash{String => Object}>] its dead letters
      # @raise [Failure]
      def dead(queue, kind: :queue, after: 0, limit: 100) = query(:dead, name: queue, kind: kind, number: after, limit: limit).fetch("dead", [])

      # Lets dead letters wait again, as if they were new.
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

      # @return [Array<Hash{String => Object}>] who is connected
      # @raise [Failure]
      def sessions = query(:sessions).fetch("sessions", [])

      # @param prefix [String] with which they begin
      # @param limit [Integer] how many at most
      # @return [Array<Hash{String => Object}>] the identities whose numbered messages the broker remembers: those that are not
      #   connected, for longest before others, then those that are
      # @raise [Failure]
      def identities(prefix = "", limit: 1000) = query(:identities, name: prefix, limit: limit).fetch("identities", [])

      # Lets the broker forget an identity: its epoch, and which of its numbered messages were taken.
      #
      # @param identity [String] of which no client is connected
      # @return [Boolean] it was remembered
      # @raise [Refused] a client is connected with it
      # @raise [Failure]
      def drop_identity(identity) = query(:drop_identity, name: identity).fetch("count").positive?

      # @return [Float] seconds that an answer takes
      # @raise [Failure]
      def ping
        began = now
        link.ask(@timeout) { |id| Wire.ping(id: id) }
        now - began
      end

      # @return [Boolean]
      def connected? = link.connected?

      # The orderly end: takes nothing more, gives back what was not begun, waits for the blocks that run and for the acknowledgement of what
      # was sent. What is still out then goes back, and counts as nothing. An identity that was made for this client is forgotten.
      #
      # @param timeout [Numeric, nil] seconds; nil: as long as it takes
      # @return [Boolean] all of it was done in time
      def close(timeout: 30)
        link = @link
        return true if @owner != Process.pid || link.failure
        deadline = timeout && now + timeout
        link.quiesce
        done = @mutex.synchronize { @subscriptions.dup }.map { |subscription| ended?(subscription, deadline) }.all?
        link.close(deadline) && done
      end

      # @return [Boolean] it was closed, or the broker wants no more of it
      def closed? = @owner == Process.pid && !@link.failure.nil?

      # @return [String] without credentials
      def inspect = "#<#{self.class.name} #{@address} as #{@current_identity.inspect}>"

      private

      # A forked child has connections of its own.
      def link
        return @link if @owner == Process.pid
        @mutex.synchronize do
          next if @owner == Process.pid
          @link.abandon
          @subscriptions = []
          connect(("" if @identity == ""))
        end
        @link
      end

      def connect(identity)
        @numbers = 0
        @current_identity = identity || Identity.make(@credentials[:token].then { |token| token.respond_to?(:call) ? token.call : token })
        link = Link.new(@address, hello: Hello.new(identity: @current_identity, known: !identity.nil?, **@credentials), **@options)
        @link = link
        @owner = Process.pid
        link.open(@open_timeout)
      rescue
        link&.close(now)
        raise
      end

      def next_number
        @mutex.synchronize { @numbers = @numbers % 65_535 + 1 }
      end

      def fields(to, level, priority, delay, ttl)
        raise ArgumentError, "priority is a whole number from 0 to 9, not #{priority.inspect}" unless priority.is_a?(Integer) && priority.between?(0, 9)
        {kind: kind(to), level: Level.number(level), priority: priority, delay: delay.zero? ? 0 : Link.milliseconds(delay),
         time_to_live: ttl ? [Link.milliseconds(ttl), 1].max : 0}
      end

      def kind(name) = KINDS.fetch(name) { raise ArgumentError, "expected :queue or :client, got #{name.inspect}" }

      def post(queue, message, fields, timeout:, wait: true, soon: true)
        link = self.link
        named!(queue)
        # What is delivered has to fit into a frame, too.
        bytes = [SEND_BYTES + queue.bytesize, PUSH_BYTES].max + message.bytesize
        link.post(count: 1, bytes: bytes, payload: message.payload.bytesize, wait: wait, soon: soon, timeout: timeout) do |number|
          Wire.send_message(id: number, sequence: sequence(number), to: queue, payload: message.payload, properties: message.packed, **fields)
        end
      end

      def named!(queue)
        return if queue.is_a?(String) && queue.bytesize.between?(1, 255)
        raise ArgumentError, "a name has 1 to 255 bytes: #{queue.inspect}"
      end

      def sequence(number) = @current_identity.empty? ? 0 : number

      # Of a batch: as many as the broker takes at once; one alone where numbers must be used that do not follow each other.
      def part_size(queue, messages)
        return 1 unless link.batches?
        most, bytes = link.batch_limits
        left = bytes - BATCH_BYTES - queue.bytesize
        fitting = messages.first(most).take_while { |message| (left -= message.bytesize + ITEM_BYTES) >= 0 }
        [fitting.size, 1].max
      end

      # @return [Pending, Refused, nil] nil: it must be sent message by message
      def post_part(queue, part, fields, timeout)
        return post(queue, part.first, fields, timeout: timeout) if part.size == 1
        named!(queue)
        items = part.map { |message| [message.packed, message.payload] }
        bytes = BATCH_BYTES + queue.bytesize + part.sum { |message| message.bytesize + ITEM_BYTES }
        link.post(count: part.size, bytes: bytes, timeout: timeout) do |number, offset, count|
          Wire.send_batch(id: number, sequence: sequence(number), to: queue, messages: items[offset, count], **fields)
        end
      rescue Refused => error
        error
      end

      # Every message has its receipt or its error; only silence is raised.
      def results(pending, size, timeout)
        return Array.new(size) { pending } if pending.is_a?(Refused)
        Array(await(pending, timeout))
      rescue Refused => error
        Array.new(size) { error }
      end

      def await(pending, timeout)
        pending.value(timeout)
      rescue OutcomeUnknown
        raise if pending.done? || !link.withdraw(pending)
        raise Unreachable, "it was not sent within #{timeout} seconds: there is no connection to the broker at #{@address}"
      end

      def query(what, name: "", kind: :queue, limit: 0, number: 0)
        kind = kind(kind)
        JSON.parse(link.ask(@timeout) { |id| Wire.query(what: QUERIES.fetch(what), id: id, kind: kind, name: name, limit: limit, number: number) })
      end

      def ended?(subscription, deadline)
        !subscription.join(deadline && [deadline - now, 0].max).nil?
      rescue
        # It has ended, if not in order; who joins it is told.
        true
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
