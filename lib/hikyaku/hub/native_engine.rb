# frozen_string_literal: true

require "securerandom"
require_relative "../error"
require_relative "admission"
require_relative "engine"
require_relative "past"
require_relative "pattern_budget"
require_relative "topic"

module Hikyaku
  # The engine in C is not there: it was not compiled, or is not for this system. The message says what to do.
  class NativeUnavailable < StandardError
    include Error
  end

  begin
    require "hikyaku/native"
  rescue LoadError => error
    # Not in the gem: this is a checkout, which Bundler may have made.
    compile = File.expand_path("../../../bin/compile", __dir__)
    cure = File.exist?(compile) ? "run #{compile}, which says what is missing (Bundler compiles no gem of `path:`)" : "install a C compiler and then this gem again"
    raise NativeUnavailable, "the engine in C is not there (#{error.message[0, 200]}): choose the one in Ruby (Hikyaku.start(engine: \"ruby\"), " \
      "config.hikyaku.engine = \"ruby\" in config/initializers/hikyaku.rb, or --engine ruby), or #{cure}"
  end

  require_relative "native_engine/keeping"

  class Hub
    # The engine in C: the same contract as the RubyEngine, and the same bytes. Ruby compiles matchers and grants for it;
    # it appends, matches and fans out. Beside the Hub's lock it has one of its own, so that a Server::NativeReactor can carry its bytes
    # without Ruby.
    #
    # Subscribers that the engine itself has let in, from a decision that it remembers, appear like any others.
    class NativeEngine
      include Engine
      include Keeping

      # What the table of topics may take, in bytes; as Topics.
      TOPIC_TABLE_BYTES = 4_194_304
      # So many subscribers that are gone may have an object in the table.
      SPARE = 1_024
      # Things that are gone, or subscribers since there were most, that are worth to look for memory.
      MUCH = 512
      private_constant :TOPIC_TABLE_BYTES, :SPARE, :MUCH, :Compiled

      def initialize(topics:, documents: nil, history: 32 * 1024 * 1024, heartbeat: 15, max_lifetime: nil, gap_policy: nil,
        max_connections: nil, max_connections_per_address: nil, max_pattern_cost_total: nil, max_pattern_cost_per_address: nil,
        max_pattern_cost_per_beginning: nil, storage: nil, key: SecureRandom.bytes(16), secret: SecureRandom.bytes(16))
        @limits = {total: max_connections, address: max_connections_per_address}
        @grants = Grants.new(topics: topics, documents: documents, gap_policy: gap_policy) { |*call| __send__(*call) }
        @subscribers = {}
        @most = SPARE
        @busiest = 0
        @now = 0.0
        _setup(history: history, heartbeat: positive(heartbeat), max_lifetime: positive(max_lifetime), announces: !documents.nil?,
          max_connections: max_connections, max_connections_per_address: max_connections_per_address,
          max_pattern_cost_total: max_pattern_cost_total, max_pattern_cost_per_address: max_pattern_cost_per_address,
          max_pattern_cost_per_beginning: max_pattern_cost_per_beginning, hub: [*topics.base.components, topics.base.origin], comparable_path: Topic.comparable_path(topics.base),
          topic_table_bytes: TOPIC_TABLE_BYTES, key: key, secret: secret)
        restore(storage, history) { |topic| topics[topic] } if storage
      end

      def look_at(topics) = nil

      def weigh(matchers) = nil

      def publish(update, topics:, now:, type: nil, surveys: nil)
        keep_trying { _publish(update.data, topics, update.id, type || update.type, update.retry_after, update.private?, now, nil) }
      end

      def subscribe(grant, now:, expires_in: nil, last_event_id: nil, address: nil, changeable: false, naming: false, form: :events, coding: :identity)
        Form.refuse_naming(form) if naming
        raise FormNotOffered, "the native engine was compiled without zlib: install it (Debian: zlib1g-dev) and then this gem again" unless offers?(form, coding)
        @now = now
        serial, answer = _subscribe(@grants.compile(grant), last_event_id, address, expires_in, now, changeable, naming, form == :message_pack, coding == :gzip)
        refuse(serial) if serial.is_a?(Symbol)
        forget_the_gone if @subscribers.size >= @most
        @subscribers[serial] = Subscriber.new(self, serial, grant, address, answer)
      end

      def offers?(form, coding) = Form.plain?(form, coding) || coding == :identity || _compresses

      def capability(subscriber) = _capability(subscriber.serial)

      def find(capability)
        serial = _find(capability) or return
        state = _state(serial) and known(serial, state.first, *state.last(2))
      end

      def change(subscriber, grant, now:, expires_in: nil, last_event_id: nil)
        @now = now
        answer = _change(subscriber.serial, @grants.compile(grant), last_event_id, expires_in, now)
        raise TooManyRewinds, Past::FULL if answer == false
        refuse(answer) if answer.is_a?(Symbol)
        [subscriber, @subscribers[subscriber.serial]].each { |object| object&.grant = grant } if answer
        answer
      end

      def resolve(last_event_id, grant)
        position, answer = _resolve(last_event_id, @grants.compile(grant))
        [position, last_event_id && answer]
      end

      def cursor(grant) = _cursor(@grants.compile(grant))

      def unsubscribe(subscriber, now: @now)
        @subscribers.delete(subscriber.serial)
        last = _unsubscribe(subscriber.serial, now)
        subscriber.ended(last)
        !last.nil?
      end

      def next_ready
        while (serial = _next_ready)
          subscriber = @subscribers[serial] and return subscriber
          state = _state(serial) and return known(serial, state.first, *state.last(2))
        end
      end

      def ready? = _ready

      def take(subscriber, max_bytes) = _take(subscriber.serial, max_bytes)

      def wrote(subscriber, bytes, now:) = _wrote(subscriber.serial, bytes, now)

      def writable(subscriber) = _writable(subscriber.serial)

      def notify(topic, frame) = _notify(topic, frame)

      # Whether anybody subscribes to exactly this topic.
      def watched?(topic) = _watched(topic)

      # Sends bytes to one subscriber at the next event boundary.
      def control(subscriber, bytes) = _control(subscriber.serial, bytes)

      # Marks a subscriber to be closed by the driver.
      def close(subscriber, reason) = _close(subscriber.serial, reason)

      # Marks all subscribers of a subject to be closed.
      def disconnect(subject) = _disconnect(subject)

      # Marks all subscribers to be closed whose grants the block selects.
      def expel = _expel(@grants.tags { |grant| yield grant })

      # Marks all subscribers to be closed, and announces no end any more.
      def shutdown = _shutdown

      def tick(now:)
        @now = now
        _tick(now)
      end

      def next_tick = _next_tick

      def each_subscriber
        return to_enum(__method__) unless block_given?
        _subscribers(nil, nil).each_slice(4) { |one| yield known(*one) }
      end

      def each_subscription(type: nil, pattern: nil)
        return to_enum(__method__, type: type, pattern: pattern) unless block_given?
        _subscribers(pattern && type.to_s, pattern).each_slice(4) do |one|
          known(*one).subscriptions.each do |subscription|
            next if pattern && !(subscription.matcher.type == type && subscription.matcher.pattern == pattern)
            yield subscription
          end
        end
      end

      def last_event_id = _last_event_id

      def rekey = _rekey(SecureRandom.bytes(16))

      # The matcher that is in use for this type and pattern, so that a pattern is compiled once however many use it.
      def matcher(type, pattern)
        tag = _user_of(type, pattern) or return
        @grants[tag]&.matchers&.find { |matcher| matcher.type == type && matcher.pattern == pattern }
      end

      def subscriber_count = _subscriber_count

      def lag = _lag

      def stats = _stats

      # Lets go of what was kept for subscribers that are gone and for decisions that were forgotten. Now and then, alone.
      def tidy
        count = subscriber_count
        return false if @tidied == [count, @grants.tag]
        @tidied = [count, @grants.tag]
        forget_the_gone
        let_go = @grants.tidy
        @busiest = [@busiest, count].max
        return false if let_go < MUCH && @busiest - count < MUCH
        @busiest = count
        true
      end

      # Gives memory back to the system that was freed. Takes a while; any thread may do it, without a lock.
      def trim
        GC.start
        _trim
      end

      # The grant as the engine has it, for drivers that answer requests by themselves.
      def compile(grant) = @grants.compile(grant)

      # Forgets the object of a subscriber that a driver has taken over; whoever asks for it later gets another.
      def handed_over(subscriber) = @subscribers.delete(subscriber.serial)

      def state_of(serial) = _state(serial)

      def last_words_for(subscriber, frame) = _farewell(subscriber.serial, frame) || frame

      def inspect = "#<#{self.class.name}>"

      private

      def positive(seconds) = seconds&.positive? ? seconds : nil

      def refuse(limit)
        raise PatternsTooCostly, PatternBudget.refusal((limit == :cost_of_address) ? :address : :hub) if limit.start_with?("cost")
        raise TooManyConnections, (limit == :total) ? "the hub holds #{@limits[:total]} connections, its limit" : "your address holds #{@limits[:address]} connections, its limit"
      end

      # The object of a subscriber: the one that there is, or another. It may leave at any time, but is known by then.
      def known(serial, id, tag, address)
        subscriber = @subscribers[serial] || Subscriber.new(self, serial, @grants[tag], address)
        subscriber.known_as(id)
      end

      # Whoever a driver has let go of, without having taken it over before.
      def forget_the_gone
        @subscribers.delete_if { |serial, _| _state(serial).nil? }
        @most = 2 * @subscribers.size + SPARE
      end
    end
  end
end

require_relative "native_engine/grants"
require_relative "native_engine/subscriber"
