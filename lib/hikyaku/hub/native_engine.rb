# frozen_string_literal: true

require "fileutils"
require "securerandom"
require_relative "../error"
require_relative "admission"
require_relative "engine"
require_relative "pattern_budget"
require_relative "replay_filter"
require_relative "storage"
require_relative "topic"

module Hikyaku
  # The engine in C cannot be loaded: it was not compiled, or not for this system. The message says what to do.
  class NativeUnavailable < StandardError
    include Error
  end

  begin
    require "hikyaku/native"
  rescue LoadError => error
    # bin/compile is not in the gem. If it exists, this is a checkout, which Bundler may have made.
    compile = File.expand_path("../../../bin/compile", __dir__)
    remedy = File.exist?(compile) ? "run #{compile}, which says what is missing (Bundler compiles no gem of `path:`)" : "install a C compiler and then this gem again"
    raise NativeUnavailable, "the engine in C is not there (#{error.message[0, 200]}): choose the one in Ruby (Hikyaku.start(engine: \"ruby\"), " \
      "config.hikyaku.engine = \"ruby\" in config/initializers/hikyaku.rb, or --engine ruby), or #{remedy}"
  end

  class Hub
    # The engine in C: the same contract as the RubyEngine, and the same bytes. Ruby compiles matchers and grants for it;
    # it appends, matches and fans out. Beside the Hub's lock it has one of its own, so that a Server::NativeReactor can carry its
    # bytes without Ruby.
    #
    # Subscribers that the engine admitted itself, from a cached decision, appear like any others.
    class NativeEngine
      include Engine

      # Bytes of memory that the table of topics may take, as in Topics.
      TOPIC_TABLE_BYTES = 4_194_304
      # Subscribers that are gone and may still have an object in the table.
      SPARE_SUBSCRIBERS = 1_024
      # So many objects must have become garbage before memory is given back to the system.
      TRIM_THRESHOLD = 512
      # Seconds for which an update waits for the next segment, and between two attempts.
      SPACE_TIMEOUT = 5
      SPACE_POLL = 0.001
      private_constant :TOPIC_TABLE_BYTES, :SPARE_SUBSCRIBERS, :TRIM_THRESHOLD, :SPACE_TIMEOUT, :SPACE_POLL, :Compiled

      def initialize(topics:, documents: nil, history: 32 * 1024 * 1024, heartbeat: 15, max_lifetime: nil, gap_policy: nil,
        max_connections: nil, max_connections_per_address: nil, max_pattern_cost_total: nil, max_pattern_cost_per_address: nil,
        max_pattern_cost_per_beginning: nil, storage: nil, key: SecureRandom.bytes(16), secret: SecureRandom.bytes(16))
        @limits = {total: max_connections, address: max_connections_per_address}
        @grants = Grants.new(topics: topics, documents: documents, gap_policy: gap_policy) { |*call| __send__(*call) }
        @subscribers = {}
        @max_objects = SPARE_SUBSCRIBERS
        @peak = 0
        @now = 0.0
        _setup(history: history, heartbeat: positive(heartbeat), max_lifetime: positive(max_lifetime), announces: !documents.nil?,
          max_connections: max_connections, max_connections_per_address: max_connections_per_address,
          max_pattern_cost_total: max_pattern_cost_total, max_pattern_cost_per_address: max_pattern_cost_per_address,
          max_pattern_cost_per_beginning: max_pattern_cost_per_beginning, hub: [*topics.base.components, topics.base.origin], comparable_path: Topic.comparable_path(topics.base),
          topic_table_bytes: TOPIC_TABLE_BYTES, key: key, secret: secret)
        restore(storage, history) { |topic| topics[topic] } if storage
      end

      def survey(topics) = nil

      def prepare(matchers) = nil

      def publish(update, topics:, now:, type: nil, surveys: nil)
        with_space { _publish(update.data, topics, update.id, type || update.type, update.retry_after, update.private?, now, nil) }
      end

      def ticket = _ticket

      def await(ticket)
        _await(ticket) or raise StorageFailed, "whether the update is stored is in doubt: #{trouble}"
      end

      def close_storage
        reason = trouble
        _close_storage(true) or raise StorageFailed, "the history could not be closed in order: #{reason}"
      ensure
        @watermark&.close
      end

      def abandon_storage
        _close_storage(false)
        @watermark&.close
      end

      def subscribe(grant, now:, expires_in: nil, last_event_id: nil, address: nil, changeable: false, naming: false, format: :events, coding: :identity)
        StreamFormat.check_naming!(format) if naming
        raise UnsupportedStreamFormat, "the native engine was compiled without zlib: install it (Debian: zlib1g-dev) and then this gem again" unless offers?(format, coding)
        @now = now
        serial, answer = _subscribe(@grants.compile(grant), last_event_id, address, expires_in, now, changeable, naming, format == :message_pack, coding == :gzip)
        refuse(serial) if serial.is_a?(Symbol)
        sweep_subscribers if @subscribers.size >= @max_objects
        @subscribers[serial] = Subscriber.new(self, serial, grant, address, answer)
      end

      def offers?(format, coding) = super || _compresses

      def capability(subscriber) = _capability(subscriber.serial)

      def find(capability)
        serial = _find(capability) or return
        state = _state(serial) and known(serial, state.first, *state.last(2))
      end

      def change(subscriber, grant, now:, expires_in: nil, last_event_id: nil)
        @now = now
        answer = _change(subscriber.serial, @grants.compile(grant), last_event_id, expires_in, now)
        raise TooManyRewinds, ReplayFilter::LIMIT_MESSAGE if answer == false
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

      def watched?(topic) = _watched(topic)

      def control(subscriber, bytes) = _control(subscriber.serial, bytes)

      def close(subscriber, reason) = _close(subscriber.serial, reason)

      def disconnect(subject) = _disconnect(subject)

      def expel = _expel(@grants.tags { |grant| yield grant })

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

      def matcher(type, pattern)
        tag = _user_of(type, pattern) or return
        @grants[tag]&.matchers&.find { |matcher| matcher.type == type && matcher.pattern == pattern }
      end

      def subscriber_count = _subscriber_count

      def lag = _lag

      def stats = _stats

      # Releases the objects of subscribers that are gone and of grants that are not used any more. Call it now and then, with the
      # Hub's lock. Returns whether `trim` is worth while.
      def tidy
        count = subscriber_count
        return false if @tidied == [count, @grants.tag]
        @tidied = [count, @grants.tag]
        sweep_subscribers
        released = @grants.sweep
        @peak = [@peak, count].max
        return false if released < TRIM_THRESHOLD && @peak - count < TRIM_THRESHOLD
        @peak = count
        true
      end

      # Gives freed memory back to the system. Takes a while; any thread may call it, without a lock.
      def trim
        GC.start
        _trim
      end

      # Compiles a grant, for drivers that answer requests by themselves.
      def compile(grant) = @grants.compile(grant)

      # Releases the object of a subscriber that a driver has taken over. Another is made if it is needed later.
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

      # The object of a subscriber, or a new one. The subscriber may leave at any time, so its id is stored.
      def known(serial, id, tag, address)
        subscriber = @subscribers[serial] || Subscriber.new(self, serial, @grants[tag], address)
        subscriber.known_as(id)
      end

      # Drops the objects of subscribers that a driver has closed without having taken them over.
      def sweep_subscribers
        @subscribers.delete_if { |serial, _| _state(serial).nil? }
        @max_objects = 2 * @subscribers.size + SPARE_SUBSCRIBERS
      end

      # An update that is published again at its position, with its key, becomes the same event.
      def restore(storage, history)
        folder = storage.fetch(:folder)
        FileUtils.mkdir_p(folder, mode: 0o700)
        age = ((storage[:age] || 0) * 1000).round
        now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        wall = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)
        watermark = Storage::Watermark.new(folder, **storage.slice(:boot))
        status, trouble = Log::Journal::Reading.of(folder, storage[:report]) do |reading|
          _open_storage(folder, Storage.segment_bytes(history), storage[:level] == :synced, age, now, wall, watermark.read, watermark.copied?, reading) do |position, topics, data, id, type, retry_after, private|
            _publish(data, topics.map { |topic| yield topic }, id, type, retry_after, private, now, position)
          end
        end
        refuse_to_open(folder, status, trouble) if status
        begin_watermark(watermark)
        report_losses(folder, storage, watermark.copied?) if storage[:report]
      rescue SystemCallError => error
        raise StorageFailed, "the hub's history cannot be stored in #{folder}: #{error.message}"
      end

      def begin_watermark(watermark)
        watermark.begin(_storage_next - 1)
        _watch(watermark.file.fileno, Storage::Watermark::POSITION_AT, watermark.timed?) if watermark.file
        @watermark = watermark
      end

      def report_losses(folder, storage, copied)
        number, holes, tail = _storage_findings
        segment = Log::Journal::Format.segment_name(number)
        holes.each { |from, to, missing| storage[:report].call(:error, Storage::LossReport.hole(folder, segment, from, to, missing)) }
        return unless tail
        newest, known, space = tail
        storage[:report].call(:error, Storage::LossReport.tail(folder, level: storage[:level], newest: newest, known: known, space: space, copied: copied))
      end

      def refuse_to_open(folder, status, trouble)
        raise Log::Journal.refusal(folder, status, trouble) || StorageFailed.new("the hub's history cannot be stored in #{folder}: #{trouble.first}")
      end

      # The disk may be slower than the publishers: an update waits for the next segment, for a while.
      def with_space
        deadline = nil
        while (id = yield).nil?
          now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          raise StorageFailed, "the update cannot be stored: the disk has not made space for it in #{SPACE_TIMEOUT} s" if now > (deadline ||= now + SPACE_TIMEOUT)
          sleep SPACE_POLL
        end
        id or raise StorageFailed, "the update cannot be stored: #{trouble}"
      end

      def trouble = _storage_trouble&.first || "there is no space on the disk, or it is larger than a segment"
    end
  end
end

require_relative "native_engine/grants"
require_relative "native_engine/subscriber"
