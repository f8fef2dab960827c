# frozen_string_literal: true

require_relative "broker_client"

module Hikyaku
  module CLI
    # `hikyaku queues`
    class Queues < BrokerClient
      # Seconds between two looks.
      INTERVAL = 2.0
      COLUMNS = {"READY" => "ready", "DELAYED" => "delayed", "OUT" => "out", "DEAD" => "dead", "RECEIVERS" => "receivers", "SENT" => "sent", "FREED" => "freed"}.freeze
      private_constant :INTERVAL, :COLUMNS

      summary "Show the broker's queues: what waits, what is out, what is dead, and for how long the oldest has waited."
      usage "hikyaku queues [OPTION…] [PREFIX]"
      examples(
        "hikyaku queues",
        "hikyaku queues --watch orders",
        "hikyaku queues --json | jq .name",
        "hikyaku queues --purge resize"
      )

      private

      def operands = %w[PREFIX]

      def options(parser)
        parser.separator("\n  PREFIX   with which their names begin; @ for the queues of clients\n\nOutput:")
        parser.on("--json", *wrap("Print each as one line of JSON with all its figures")) { @json = true }
        parser.on("--watch", *wrap("Show them again every 2 seconds, until interrupted")) { @watch = true }
        value_option(parser, "--limit N", "So many at most; 1000 unless given") { |text| @limit = whole("--limit", text) }
        parser.separator("\nWhat else:")
        value_option(parser, "--purge QUEUE", "Drop all messages that wait in this queue") { |name| @purge = name }
        broker_options(parser)
      end

      def call(prefix = "")
        raise UsageError, "--purge empties one queue, and shows none: give no PREFIX" if @purge && !prefix.empty?
        connect(identity: "") do |client|
          next purge(client) if @purge
          loop do
            show(find(client, prefix))
            break unless @watch
            sleep INTERVAL
          end
        end
        0
      end

      def find(client, prefix)
        kind = prefix.start_with?("@") ? :client : :queue
        client.queues(prefix.delete_prefix("@"), kind: kind, limit: @limit || 1000).map { |queue| (kind == :client) ? queue.merge("name" => "@#{queue["name"]}") : queue }
      end

      def purge(client)
        name, kind = queue(@purge)
        count = client.purge(name, kind: kind)
        stdout.puts("#{count} #{(count == 1) ? "message" : "messages"} dropped")
      end

      def show(queues)
        return queues.each { |queue| json(queue) } if @json
        stdout.print("\e[H\e[2J") if @watch && stdout.tty?
        rows = queues.map { |queue| [plain(queue["name"]), *queue.values_at(*COLUMNS.values), queue["ready"].to_i.zero? ? "" : duration(queue["oldest_ms"])] }
        table([["QUEUE", *COLUMNS.keys, "OLDEST"], *rows])
      end
    end
  end
end
