# frozen_string_literal: true

require "json"
require "securerandom"
require_relative "../error"
require_relative "../hub/update"
require_relative "../hub/update_limits"
require_relative "outbox/claims"
require_relative "outbox/courier"
require_relative "outbox/pass"
require_relative "outbox/rows"

module Hikyaku
  # Updates that are published if, and only if, a database transaction is committed.
  #
  # A publish stores a row, in the transaction that is open. A courier takes rows whose transactions are committed to the
  # hub, in order, and deletes them:
  #
  #     transaction: … INSERT … COMMIT ──► courier: claim, publish with the row's key, DELETE
  #
  # Whatever ends between two of these steps, the row is still there, or was never; and the hub, which remembers the keys of
  # publishes (Hub::Idempotency), publishes nothing twice. A hub that has forgotten, because it was restarted, may do so: but the
  # event's id is the same, by which readers know a repeat.
  #
  # Rows of one process are published in the order in which they were committed, however many couriers there are. A row that
  # the hub will never take is set aside with the reason, and the others go on.
  class Outbox
    # What is known of rows that wait, for whoever watches.
    Stats = Struct.new(:waiting, :set_aside, :oldest_seconds, keyword_init: true)
    # A row that was set aside.
    Aside = Struct.new(:id, :topics, :error, :attempts, :at, keyword_init: true)
    MAX_KEY_BYTES = 255
    KEY = /\A[\x21-\x7e]{1,#{MAX_KEY_BYTES}}\z/
    private_constant :MAX_KEY_BYTES, :KEY

    class << self
      # @return [Outbox, nil] the one that Hikyaku.publish stores in; nil when there is none
      attr_accessor :current
    end

    # @return [Courier] of this process
    attr_reader :courier

    # @param publish [#call] takes (topics, data, **options) to the hub, as Publisher#publish
    # @param record [#call] gives the class of Active Record in whose database the table is
    # @param inline [Boolean] rows go to the hub in the thread that has committed them: for tests
    # @param courier [Boolean] whether this process takes rows to the hub after its commits; if not, another one must
    # @param limits [Hub::UpdateLimits] those of the hub
    # @param poll_seconds [Numeric] after which a courier looks for rows of others
    # @param logger [Logger, nil]
    def initialize(publish:, record: -> { ::ActiveRecord::Base }, inline: false, courier: true, limits: Hub::UpdateLimits.new(max_request_bytes: 1_048_576), poll_seconds: 1, logger: nil)
      @publish = publish
      @record = record
      @inline = inline
      @carries = courier
      @limits = limits
      @logger = logger
      @lock = Mutex.new
      @courier = Courier.new(poll_seconds: poll_seconds, logger: logger, waiting: -> { rows.waiting? }) { pass }
    end

    # Stores an update; it is published when the transaction that is open has been committed, or now if there is none.
    #
    # @param topics [String, Array<String>] see Publisher#publish, as the others
    # @param data [String, Object]
    # @param private [Boolean]
    # @param id [String, nil] the event id; one is made from a UUID when nil
    # @param type [String, nil]
    # @param retry_after [Integer, nil] milliseconds
    # @param idempotency_key [String, nil] one is made when nil
    # @return [String] the event id
    # @raise [InvalidTopic, InvalidUpdate, LimitExceeded] no hub would take it
    # @raise [ArgumentError] the key is none
    def publish(topics, data = "", private: false, id: nil, type: nil, retry_after: nil, idempotency_key: nil)
      uuid = SecureRandom.uuid
      key = idempotency_key || uuid
      raise ArgumentError, "idempotency_key must be 1 to #{MAX_KEY_BYTES} visible ASCII characters" unless KEY.match?(key)
      update = Hub::Update.new(topics: topics, data: data.is_a?(String) ? data : data.to_json, private: private,
        id: id.to_s.empty? ? "urn:uuid:#{uuid}" : id, type: type, retry_after: retry_after)
      @limits.check(update)
      rows.store(update, key: key)
      update.id
    end

    # Takes as many rows to the hub as one courier claims at once.
    #
    # @return [Pass::Outcome]
    def pass = rows.lent { |connection| Pass.new(rows, Claims.for(rows, connection), publish: method(:carry), logger: @logger).run }

    # Begins to look for rows, of whichever process, for as long as this one lives.
    #
    # @param here [Boolean] false: only in processes that this one forks
    # @return [void]
    def serve(here: true)
      @courier.serve(here: here) if @carries
    end

    # @return [Object, nil] the transaction of this thread whose commit an update that is published now waits for
    # @api private
    def transaction = rows.open_transaction

    # @return [Stats]
    def stats
      waiting = rows.waiting
      oldest = waiting.order(:id).limit(1).pick(:created_at)
      Stats.new(waiting: waiting.count, set_aside: rows.aside.count, oldest_seconds: oldest && [Time.now - oldest, 0.0].max)
    end

    # @param limit [Integer]
    # @return [Array<Aside>] rows that the hub would not take, the oldest first
    def set_aside(limit: 100)
      rows.aside.order(:id).limit(limit).map do |row|
        Aside.new(id: row.id, topics: row.readable? ? row.topics : [], error: row.error, attempts: row.attempts, at: row.set_aside_at)
      end
    end

    # Lets the couriers try again what was set aside.
    #
    # @return [Integer] how many rows that are
    def retry_set_aside
      rows.aside.update_all(set_aside_at: nil, attempts: 0, error: nil).tap { |count| @courier.wake if count > 0 && @carries }
    end

    # A row's transaction was committed.
    #
    # @api private
    # @param row [Rows] one of them
    # @return [void]
    def committed(row)
      if @inline
        carry(row)
        row.delete
      elsif @carries
        @courier.wake
      end
    end

    # @return [String]
    def inspect = "#<#{self.class.name} #{Rows::TABLE}>"

    private

    # Made when it is needed: until then the application may still say which database it is in.
    def rows = @rows || @lock.synchronize { @rows ||= Rows.of(@record.call, outbox: self) }

    def carry(row) = @publish.call(row.topics, row.data, **row.options, idempotency_key: row.idempotency_key)
  end
end
