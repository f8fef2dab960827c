# frozen_string_literal: true

require_relative "../../server/metrics"
require_relative "../wire/code"

module Hikyaku
  module Broker
    class Server
      # The metrics of a broker: in the text format of Prometheus, and for the developer page.
      class Metrics
        include Hikyaku::Server::TextFormat

        # Name, type, help, and the key of Engine#stats.
        BROKER = [
          ["sessions", "gauge", "Connected clients", :sessions],
          ["queues", "gauge", "Queues", :queues],
          ["identities", "gauge", "Identities whose numbered messages are remembered", :identities],
          ["identities_evicted_total", "counter", "Identities that were forgotten because there were too many", :identities_evicted],
          ["messages", "gauge", "Messages that are kept", :messages],
          ["messages_lost", "gauge", "Messages that are not delivered, because the record of their queue or sender is missing", :messages_lost],
          ["message_bytes", "gauge", "Bytes of the messages that are kept", :bytes],
          ["memory_bytes", "gauge", "Bytes that messages take in memory", :memory_bytes],
          ["index_bytes", "gauge", "The part of memory_bytes that is not content", :index_bytes],
          ["delivered_total", "counter", "Deliveries to receivers", :delivered],
          ["acked_total", "counter", "Messages that receivers have acknowledged", :freed],
          ["redelivered_total", "counter", "Deliveries of messages that were delivered before", :redelivered],
          ["failed_total", "counter", "Deliveries that receivers have rejected", :failed],
          ["crashed_total", "counter", "Deliveries whose receivers vanished while they worked on them", :crashed],
          ["released_total", "counter", "Deliveries that receivers have released", :released],
          ["expired_total", "counter", "Messages that have expired", :expired],
          ["duplicates_total", "counter", "Messages that the broker had accepted before", :duplicates],
          ["stale_total", "counter", "Settlements of deliveries whose lease had ended", :stale],
          ["evacuated_total", "counter", "Messages that were copied out of an old segment", :copied]
        ].freeze
        # The same for its journal, whose times are in nanoseconds.
        JOURNAL = [
          ["journal_records_total", "counter", "Records that were appended to the journal", :records],
          ["journal_written_bytes_total", "counter", "Bytes that were appended to the journal", :bytes],
          ["journal_batches_total", "counter", "Writes to the journal", :batches],
          ["journal_segments", "gauge", "Segments of the journal", :segments],
          ["journal_spares", "gauge", "Segments that are ready for use", :spares],
          ["journal_torn_repaired", "gauge", "Torn ends that were repaired when the journal was opened", :torn_repaired],
          ["journal_torn_missing", "gauge", "Records that were missing before others when the journal was opened", :torn_missing]
        ].freeze
        LEVELS = %w[memory written synced].freeze
        STATES = %i[ready delayed out dead].freeze
        # The same for each queue.
        QUEUE = [
          ["queue_bytes", "gauge", "Bytes of a queue's messages", :bytes],
          ["queue_receivers", "gauge", "Subscriptions of a queue", :receivers],
          ["queue_sent_total", "counter", "Messages that a queue has accepted", :sent],
          ["queue_acked_total", "counter", "Messages of a queue that were acknowledged", :freed],
          ["queue_redelivered_total", "counter", "Deliveries of a queue's messages that were delivered before", :redelivered],
          ["queue_failed_total", "counter", "Deliveries of a queue that were rejected", :failed],
          ["queue_crashed_total", "counter", "Deliveries of a queue whose receivers vanished while they worked on them", :crashed],
          ["queue_expired_total", "counter", "Messages of a queue that have expired", :expired]
        ].freeze
        # Queues with metrics of their own, those with the most messages first: each client may have one.
        SHOWN = 500
        # The developer page, which asks each second, shows no single queues beyond this number.
        MAX_OVERVIEW = 10_000
        NANOSECONDS = 1e9
        # Escapes of a label (Prometheus, text format).
        ESCAPES = {"\\" => "\\\\", "\"" => "\\\"", "\n" => "\\n"}.freeze
        private_constant :BROKER, :JOURNAL, :LEVELS, :STATES, :QUEUE, :SHOWN, :MAX_OVERVIEW, :NANOSECONDS, :ESCAPES

        def initialize(driver, shown: SHOWN)
          @driver = driver
          @shown = shown
          @lock = Mutex.new
          @longest_sync = 0
        end

        def overview
          stats = @driver.stats or return
          totals = {queues: stats[:queues]}.merge(STATES.to_h { |state| [state, stats.fetch(state, 0)] })
          return totals.merge(largest: []) if stats[:queues] > MAX_OVERVIEW
          largest = (@driver.queues || []).max_by(@shown) { |queue| [queue[:dead], depth(queue)] }
          totals.merge(largest: largest.map { |queue| queue.slice(*STATES, :receivers, :oldest_ms).merge(name: legible(queue[:name])) })
        end

        def to_s
          stats = @driver.stats or return ""
          (table(BROKER, stats) + states(stats) + levels(stats) + refusals(stats) + journal(stats) + queues).map { |line| "#{line}\n" }.join
        end

        private

        def states(stats)
          metric("messages_by_state", "gauge", "Messages by state", STATES.to_h { |state| [labels(state: state), stats.fetch(state, 0)] })
        end

        def levels(stats)
          metric("received_total", "counter", "Messages that were accepted, by requested level",
            LEVELS.zip(stats.fetch(:received, [])).to_h { |level, count| [labels(level: level), count || 0] })
        end

        def refusals(stats)
          counts = stats.fetch(:refused, [])
          metric("refusals_total", "counter", "Refused requests, by code",
            Wire::Code::NAMES.to_h { |code, name| [labels(code: name.downcase), counts[code] || 0] })
        end

        def journal(stats)
          journal = stats[:journal] or return []
          table(JOURNAL, journal) +
            summary("sync_seconds", "Times of fdatasync", journal[:sync_ns] / NANOSECONDS, journal[:syncs]) +
            metric("sync_longest_seconds", "gauge", "The longest fdatasync since the start", nil => longest_sync(journal) / NANOSECONDS)
        end

        # The engine reports the longest since the last call, but several scrapers may call.
        def longest_sync(journal) = @lock.synchronize { @longest_sync = [@longest_sync, journal[:longest_sync_ns]].max }

        def queues
          all = @driver.queues || []
          shown = all.max_by(@shown) { |queue| depth(queue) }
          of_each = shown.to_h { |queue| [{queue: queue[:name], kind: (queue[:kind] == 1) ? "client" : "queue"}, queue] }
          lines = metric("queues_not_shown", "gauge", "Queues without metrics of their own, which are the shorter ones", nil => all.size - shown.size) +
            metric("queue_messages", "gauge", "Messages of a queue by state",
              of_each.flat_map { |names, queue| STATES.map { |state| [labels(**names, state: state), queue[state]] } }.to_h) +
            metric("queue_oldest_seconds", "gauge", "Age of the oldest message that waits in a queue", by_queue(of_each) { |queue| queue[:oldest_ms] / 1000.0 })
          lines + QUEUE.flat_map { |name, type, help, key| metric(name, type, help, by_queue(of_each) { |queue| queue[key] }) }
        end

        def by_queue(of_each, &figure) = of_each.to_h { |names, queue| [labels(**names), figure.call(queue)] }

        def depth(queue) = STATES.sum { |state| queue[state] }

        def full_name(name) = "hikyaku_broker_#{name}"

        def labels(**pairs) = pairs.map { |name, value| "#{name}=\"#{escape(value.to_s)}\"" }.join(",")

        def escape(text) = legible(text).gsub(/[\\"\n]/, ESCAPES)

        def legible(text) = text.dup.force_encoding(Encoding::UTF_8).scrub("?")
      end
    end
  end
end
