# frozen_string_literal: true

require_relative "broker_client"

module Hikyaku
  module CLI
    # `hikyaku send`
    class Send < BrokerClient
      # Messages that are under way at a time.
      WINDOW = 1000
      private_constant :WINDOW

      summary "Send messages to a queue of the broker, and print their ids when it has them."
      usage "hikyaku send [OPTION…] QUEUE [PAYLOAD]"
      examples(
        "hikyaku send resize photo.jpg",
        "hikyaku send --level synced --property content-type=application/json orders '{\"book\": 1}'",
        "hikyaku send --delay 3600 --ttl 7200 reminders 'call Ann'",
        "seq 1000 | hikyaku send --lines numbers"
      )

      private

      def operands = %w[QUEUE PAYLOAD]

      def options(parser)
        @fields = {}
        @properties = {}
        @count = 1
        parser.separator("\n  QUEUE     its name; @NAME for the queue of a client\n  PAYLOAD   - reads it from the standard input; empty unless given\n\nMessage:")
        value_option(parser, "--level LEVEL", "What is waited for: memory, written (survives the broker's process) or synced (survives a loss of power); else what the broker usually does") { |text| @fields[:level] = level(text) }
        value_option(parser, "--priority N", "0 to 9, the highest first; 4 unless given") { |text| @fields[:priority] = whole("--priority", text, least: 0) }
        value_option(parser, "--delay SECONDS", "Time before which it is not delivered") { |text| @fields[:delay] = seconds("--delay", text) }
        value_option(parser, "--ttl SECONDS", "Time after which it is not delivered any more") { |text| @fields[:ttl] = seconds("--ttl", text) }
        value_option(parser, "--property NAME=VALUE", "Travels with it; may be repeated") { |text| property(text) }
        value_option(parser, "--count N", "Send it so many times") { |text| @count = whole("--count", text) }
        parser.on("--lines", *wrap("Each line of the standard input is a message")) { @lines = true }
        broker_options(parser)
      end

      def level(text)
        return text.to_sym if %w[memory written synced].include?(text)
        raise UsageError, "--level: expected memory, written or synced, got #{text.inspect}"
      end

      def property(text)
        name, value = text.split("=", 2)
        raise UsageError, "--property: expected NAME=VALUE, got #{text.inspect}" if value.nil? || name.empty?
        @properties[name] = value
      end

      def call(queue = nil, payload = nil)
        name, to = queue(queue)
        raise UsageError, "--lines takes the messages from the standard input: give no PAYLOAD" if @lines && payload && payload != "-"
        connect do |client|
          under_way = []
          each_payload(payload) do |bytes|
            under_way << client.send_async(name, bytes, to: to, properties: @properties, **@fields)
            show(under_way.shift) if under_way.size > WINDOW
          end
          show(under_way.shift) until under_way.empty?
        end
        0
      end

      def each_payload(payload)
        return stdin.each_line(chomp: true) { |line| @count.times { yield line } } if @lines
        payload = stdin.read.to_s if payload == "-"
        @count.times { yield payload.to_s }
      end

      # It has no id to be told when it was sent again after a connection had broken, and was there.
      def show(pending)
        receipt = pending.value
        stdout.puts(receipt.id || "taken")
      end
    end
  end
end
