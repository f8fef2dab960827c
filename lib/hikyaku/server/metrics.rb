# frozen_string_literal: true

module Hikyaku
  class Server
    # Lines of figures in the text format of Prometheus. Whoever includes it has `full_name`, what a metric is called outside.
    module TextFormat
      private

      def table(rows, figures)
        rows.flat_map { |name, type, help, key| figures.key?(key) ? metric(name, type, help, nil => figures[key]) : [] }
      end

      def metric(name, type, help, values)
        return [] if values.empty?
        name = full_name(name)
        heading(name, type, help) + values.map { |labels, value| "#{name}#{"{#{labels}}" if labels} #{value}" }
      end

      # A summary without quantiles.
      def summary(name, help, sum, count)
        name = full_name(name)
        heading(name, "summary", help) + ["#{name}_sum #{sum}", "#{name}_count #{count}"]
      end

      def heading(name, type, help) = ["# HELP #{name} #{help}", "# TYPE #{name} #{type}"]
    end

    # The hub's figures in the text format of Prometheus.
    class Metrics
      include TextFormat

      HEADERS = {"content-type" => "text/plain; version=0.0.4; charset=utf-8", "cache-control" => "no-store"}.freeze
      # Name, type, what it says, and the figure of Hub#stats that it is.
      HUB = [
        ["subscribers", "gauge", "Connections that wait for events", :subscribers],
        ["subscriptions", "gauge", "Matchers of all subscribers", :subscriptions],
        ["feeds", "gauge", "Different matchers in use", :feeds],
        ["pattern_cost", "gauge", "Steps for each byte of a topic that matching the patterns in use takes at most", :pattern_cost],
        ["log_bytes", "gauge", "Bytes of the history that is retained", :history_bytes],
        ["log_updates", "gauge", "Updates that are retained", :history_updates],
        ["publishes_total", "counter", "Updates that were published", :publishes],
        ["deliveries_total", "counter", "Events that subscribers received", :deliveries],
        ["delivered_bytes_total", "counter", "Bytes that subscribers received", :delivered_bytes]
      ].freeze
      # As above, of the reactor's stats; only what it has is shown.
      REACTOR = [
        ["connections", "gauge", "Connections of all kinds", :connections],
        ["connections_accepted_total", "counter", "Connections that were accepted", :accepted],
        ["requests_total", "counter", "Requests that were read", :requests],
        ["received_bytes_total", "counter", "Bytes that clients sent", :bytes_in],
        ["sent_bytes_total", "counter", "Bytes that clients were sent", :bytes_out],
        ["grant_hits_total", "counter", "Requests answered from a decision taken before", :grant_hits],
        ["grant_misses_total", "counter", "Requests for which no decision was remembered", :grant_misses],
        ["grants", "gauge", "Decisions that are remembered", :decisions],
        ["grant_bytes", "gauge", "Bytes of the decisions that are remembered, with what Ruby keeps for them", :decision_bytes],
        ["asks_total", "counter", "Requests that Ruby was asked to answer", :asks],
        ["loop_turns_total", "counter", "Turns of the loop", :turns]
      ].freeze
      # What was refused before a request was read has no Problem of Web's.
      REFUSED = {"too_many_connections" => :refused_connections, "overloaded" => :refused_asks, "malformed" => :malformed,
                 "slow_request" => :timed_out_heads}.freeze
      NANOSECONDS = 1e9
      HEAP_PAGE_BYTES = GC::INTERNAL_CONSTANTS.fetch(:HEAP_PAGE_SIZE, 65_536)
      private_constant :HUB, :REACTOR, :REFUSED, :NANOSECONDS, :HEAP_PAGE_BYTES

      def initialize(hub, refusals:, reactor: nil, broker: -> {})
        @hub = hub
        @refusals = refusals
        @reactor = reactor
        @broker = broker
      end

      def to_s
        stats = @hub.stats
        reactor = @reactor.respond_to?(:stats) ? @reactor.stats : {}
        lines = table(HUB, stats) + table(REACTOR, reactor) + lag + evictions(stats) + refused(stats, reactor) +
          timeouts(reactor) + turns(reactor) + process
        "#{lines.join("\n")}\n#{@broker.call}"
      end

      private

      def lag
        slowest, p99 = @hub.lag
        metric("lag_updates", "gauge", "Updates that the slowest reader, and the 99th percentile, is behind",
          %(quantile="1") => slowest, %(quantile="0.99") => p99)
      end

      def evictions(stats)
        metric("evictions_total", "counter", "Readers that the history has passed, by what became of them",
          %(outcome="told") => stats[:gaps], %(outcome="closed") => stats[:overruns])
      end

      def refused(stats, reactor)
        counts = @refusals.to_h
        counts.delete("too_many_connections") # the hub tells the limits apart
        REFUSED.each { |reason, key| counts[reason] = counts.fetch(reason, 0) + reactor[key] if reactor.key?(key) }
        counts["too_many_in_total"] = stats[:refused_total]
        counts["too_many_of_address"] = stats[:refused_address] + reactor.fetch(:refused_of_address, 0)
        metric("refusals_total", "counter", "Requests and connections that were refused, by reason",
          counts.sort.to_h.transform_keys { |reason| %(reason="#{reason}") })
      end

      def timeouts(reactor)
        counts = {"write" => :timed_out_writes, "idle" => :timed_out_idle}.select { |_, key| reactor.key?(key) }
        metric("timeouts_total", "counter", "Connections that were closed because nothing moved, by what was awaited",
          counts.to_h { |awaited, key| [%(awaited="#{awaited}"), reactor[key]] })
      end

      def turns(reactor)
        return [] unless reactor.key?(:turn_ns)
        metric("loop_turn_seconds_total", "counter", "Time that the loop worked", nil => reactor[:turn_ns] / NANOSECONDS) +
          metric("loop_longest_turn_seconds", "gauge", "Longest turn since this was asked last", nil => reactor[:longest_turn_ns] / NANOSECONDS)
      end

      def process
        metric("process_cpu_seconds_total", "counter", "CPU time of the process", nil => Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID).round(3)) +
          metric("process_resident_memory_bytes", "gauge", "Memory of the process", nil => memory) +
          metric("ruby_heap_bytes", "gauge", "Bytes of Ruby's heap, in use or not: this Ruby seldom gives them back", nil => GC.stat(:heap_allocated_pages) * HEAP_PAGE_BYTES)
      end

      def memory
        File.read("/proc/self/statm").split[1].to_i * 4096
      rescue SystemCallError
        0
      end

      def full_name(name) = name.start_with?("process_") ? name : "hikyaku_#{name}"
    end
  end
end
