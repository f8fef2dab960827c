# frozen_string_literal: true

require_relative "broker_client"

module Hikyaku
  module CLI
    # `hikyaku explain`
    class Explain < BrokerClient
      LEVELS = %w[memory written synced].freeze
      private_constant :LEVELS

      summary "Say where a message of the broker is and why it waits, or what stands before the oldest of a queue."
      usage "hikyaku explain [OPTION…] ID|QUEUE"
      examples(
        "hikyaku explain 4711",
        "hikyaku explain orders",
        "hikyaku explain --segments"
      )

      private

      def operands = %w[ID|QUEUE]

      def options(parser)
        parser.separator("\n  ID      of a message, as send prints it\n  QUEUE   its name; @NAME for the queue of a client\n\nWhat:")
        parser.on("--queue", *wrap("What is given is a queue, even if it is a number")) { @queue = true }
        parser.on("--segments", *wrap("Which message keeps each oldest part of the journal on the disk")) { @segments = true }
        parser.on("--json", *wrap("Print what the broker says as JSON")) { @json = true }
        broker_options(parser)
      end

      def call(what = nil)
        raise UsageError, "give an ID or a QUEUE; see hikyaku explain --help" if what.to_s.empty? && !@segments
        raise UsageError, "--segments explains the journal: give no ID and no QUEUE" if what && @segments
        connect(identity: "") do |client|
          @segments ? segments(client.segments) : show(explanation(client, what))
        end
        0
      end

      def explanation(client, what)
        return client.explain(what.to_i) if what.match?(/\A\d{1,19}\z/) && !@queue
        name, kind = queue(what)
        client.explain_queue(name, kind: kind)
      end

      def show(report)
        return json(report) if @json
        message = report["message"]
        stdout.puts(message ? "Message #{message["id"]} in #{plain(message["queue"])}: #{plain(message["state"])}, #{plain(report["because"])}." : "#{plain(report["because"]).capitalize}.")
        return unless message
        lines(message).each { |name, value| stdout.puts("  #{name}: #{value}") }
      end

      def lines(message)
        holder = message["holder"]
        {
          "age" => duration(message["age_ms"]),
          "due" => ("in #{duration(message["due_in_ms"])}" if message["due_in_ms"]),
          "expires" => ("in #{duration(message["expires_in_ms"])}" if message["expires_in_ms"]),
          "held by" => ("#{plain(holder["identity"])} (#{plain(holder["agent"])}), session #{holder["session"]}, for #{duration(holder["lease_in_ms"])} more" if holder),
          "tried" => "failures #{message["failures"]}, crashes #{message["crashes"]}, returns #{message["returns"]}",
          "priority" => message["priority"],
          "level" => LEVELS[message["level"].to_i],
          "bytes" => message["bytes"],
          "segment" => message["segment"]
        }.compact
      end

      def segments(list)
        return list.each { |segment| json(segment) } if @json
        rows = list.map { |segment| [segment["number"], segment["bytes"], segment["live"], segment.dig("oldest", "id"), plain(segment.dig("oldest", "queue"))] }
        table([["SEGMENT", "BYTES", "LIVE", "OLDEST", "IN"], *rows])
      end
    end
  end
end
