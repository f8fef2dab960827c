# frozen_string_literal: true

require_relative "../../server/text_format"
require_relative "../wire/code"

module Hikyaku
  module Broker
    class Server
      # The broker's figures: in the text format of Prometheus, and for a page.
      class Metrics
        include Hikyaku::Server::TextFormat

        # Name, type, what it says, and the figure of Engine#stats that it is.
        BROKER = [
          ["sessions", "gauge", "Clients that are connected", :sessions],
          ["queues", "gauge", "Queues that there are", :queues],
          ["identities", "gauge", "Identities whose numbered messages are remembered", :identities],
          ["identities_evicted_total", "counter", "Identities that were forgotten because there were too many", :identities_evicted],
          ["messages", "gauge", "Messages that are kept", :messages],
          ["messages_lost", "gauge", "Messages that could not be kept at the start: what says their queue or their sender is missing", :messages_lost],
          ["message_bytes", "gauge", "Bytes of the messages that are kept", :bytes],
          ["memory_bytes", "gauge", "Bytes that messages take in memory", :memory_bytes],
          ["index_bytes", "gauge", "Of these, what they take beside their content, wherever that is", :index_bytes],
          ["delivered_total", "counter", "Deliveries to receivers", :delivered],
          ["freed_total", "counter", "Messages that receivers have finished", :freed],
          ["redelivered_total", "counter", "Deliveries of messages that were delivered before", :redelivered],
          ["failed_total", "counter", "Deliveries that receivers have rejected", :failed],
          ["crashed_total", "counter", "Deliveries whose receivers vanished with them in hand", :crashed],
          ["released_total", "counter", "Deliveries that receivers have given back", :released],
          ["expired_total", "counter", "Messages whose time to live was over", :expired],
          ["duplicates_total", "counter", "Messages that were taken before", :duplicates],
          ["stale_total", "counter", "Answers to deliveries whose lease had ended", :stale],
          ["evacuated_total", "counter", "Messages that were copied out of an old segment", :copied]
        ].freeze
        # As above, of its journal. Times are ns there.
        JOURNAL = [
          ["journal_records_total", "counter", "Records that were appended to the journal", :records],
          ["journal_written_bytes_total", "counter", "Bytes that were appended to the journal", :bytes],
          ["journal_batches_total", "counter", "Writes to the journal", :batches],
          ["journal_segments", "gauge", "Segments of the journal", :segments],
          ["journal_spares", "gauge", "Segments that wait to be used", :spares],
          ["journal_torn_repaired", "gauge", "Torn ends that were repaired when the journal was opened", :torn_repaired],
          ["journal_torn_missing", "gauge", "Records that were missing before others when the journal was opened", :torn_missing]
        ].freeze
        LEVELS = %w[memory written synced].freeze
        STATES = %i[ready delayed out dead].freeze
        # Of each queue.
        QUEUE = [
          ["queue_bytes", "gauge", "Bytes of a queue's messages", :bytes],
          ["queue_receivers", "gauge", "Subscriptions of a queue", :receivers],
          ["queue_sent_total", "counter", "Messages that a queue has taken", :sent],
          ["queue_freed_total", "counter", "Messages of a queue that were finished", :freed],
          ["queue_redelivered_total", "counter", "Deliveries of a queue's messages that were delivered before", :redelivered],
          ["queue_failed_total", "counter", "Deliveries of a queue that were rejected", :failed],
          ["queue_crashed_total", "counter", "Deliveries of a queue whose receivers vanished with them in hand", :crashed],
          ["queue_expired_total", "counter", "Messages of a queue whose time to live was over", :expired]
        ].freeze
        # Queues that are shown one by one: those with most messages. There may be one for each client.
        SHOWN = 500
        # So many queues are looked at each second for a page, and no more.
        MOST_LOOKED_AT = 10_000
        NANOSECONDS = 1e9
        # What may stand in a label as it is, and what stands for the rest (Prometheus, text format).
        ESCAPES = {"\\" => "\\\\", "\"" => "\\\"", "\n" => "\\n"}.freeze
        private_constant :BROKER, :JOURNAL, :LEVELS, :STATES, :QUEUE, :SHOWN, :MOST_LOOKED_AT, :NANOSECONDS, :ESCAPES

        def initialize(driver, shown: SHOWN)
          @driver = driver
          @shown = shown
          @lock = Mutex.new
          @longest_sync = 0
        end

        def overview
          stats = @driver.stats or return
          totals = {queues: stats[:queues]}.merge(STATES.to_h { |state| [state, stats.fetch(state, 0)] })
          return totals.merge(largest: []) if stats[:queues] > MOST_LOOKED_AT
          largest = (@driver.queues || []).max_by(@shown) { |queue| [queue[:dead], depth(queue)] }
          totals.merge(largest: largest.map { |queue| queue.slice(*STATES, :receivers, :oldest_ms).merge(name: legible(queue[:name])) })
        end

        def to_s
          stats = @driver.stats or return ""
          (table(BROKER, stats) + states(stats) + levels(stats) + refusals(stats) + journal(stats) + queues).map { |line| "#{line}\n" }.join
        end

        private

        def states(stats)
          metric("messages_by_state", "gauge", "Messages by what they wait for", STATES.to_h { |state| [labels(state: state), stats.fetch(state, 0)] })
        end

        def levels(stats)
          metric("received_total", "counter", "Messages that were taken, by the level that was asked for",
            LEVELS.zip(stats.fetch(:received, [])).to_h { |level, count| [labels(level: level), count || 0] })
        end

        def refusals(stats)
          counts = stats.fetch(:refused, [])
          metric("refusals_total", "counter", "Requests that were refused, by the code of the answer",
            Wire::Code::NAMES.to_h { |code, name| [labels(code: name.downcase), counts[code] || 0] })
        end

        def journal(stats)
          journal = stats[:journal] or return []
          table(JOURNAL, journal) +
            summary("sync_seconds", "Times that the disk was waited for", journal[:sync_ns] / NANOSECONDS, journal[:syncs]) +
            metric("sync_longest_seconds", "gauge", "The longest such time since the start", nil => longest_sync(journal) / NANOSECONDS)
        end

        # The engine says the longest since it was read last: several may ask, and none may take it from the others.
        def longest_sync(journal) = @lock.synchronize { @longest_sync = [@longest_sync, journal[:longest_sync_ns]].max }

        def queues
          all = @driver.queues || []
          shown = all.max_by(@shown) { |queue| depth(queue) }
          of_each = shown.to_h { |queue| [{queue: queue[:name], kind: (queue[:kind] == 1) ? "client" : "queue"}, queue] }
          lines = metric("queues_not_shown", "gauge", "Queues that stand in no line of their own, the shorter ones", nil => all.size - shown.size) +
            metric("queue_messages", "gauge", "Messages of a queue by what they wait for",
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
