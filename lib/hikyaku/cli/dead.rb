# frozen_string_literal: true

require_relative "broker_client"

module Hikyaku
  module CLI
    # `hikyaku dead`
    class Dead < BrokerClient
      REASONS = {1 => "failed too often", 2 => "its receivers vanished", 3 => "its receiver said so"}.freeze
      # Characters of a payload that are shown.
      SHOWN = 60
      private_constant :REASONS, :SHOWN

      summary "List the dead letters of a queue, let them wait again, or drop them."
      usage "hikyaku dead [OPTION…] QUEUE"
      examples(
        "hikyaku dead orders",
        "hikyaku dead --replay 4711 orders",
        "hikyaku dead --replay all orders",
        "hikyaku dead --drop all orders"
      )

      private

      def operands = %w[QUEUE]

      def options(parser)
        parser.separator("\n  QUEUE   its name; @NAME for the queue of a client\n\nWhat:")
        value_option(parser, "--replay ID", "Lets it wait again as if it were new; all for all of the queue") { |text| action(:replay, text) }
        value_option(parser, "--drop ID", "Drops it; all for all of the queue") { |text| action(:drop, text) }
        value_option(parser, "--limit N", "List so many at most; 100 unless given") { |text| @limit = whole("--limit", text) }
        parser.on("--json", *wrap("Print each as one line of JSON, with the first 256 bytes of its payload in base64")) { @json = true }
        broker_options(parser)
      end

      def action(name, text)
        raise UsageError, "give --replay or --drop once" if @action
        @action = name
        @message = whole("--#{name}", text) unless text == "all"
      end

      def call(queue = nil)
        name, kind = queue(queue)
        connect(identity: "") do |client|
          @action ? act(client, name, kind) : list(client.dead(name, kind: kind, limit: @limit || 100))
        end
        0
      end

      def act(client, name, kind)
        count = client.public_send(@action, name, @message, kind: kind)
        stdout.puts("#{count} #{(count == 1) ? "message" : "messages"} #{{replay: "replayed", drop: "dropped"}.fetch(@action)}")
      end

      def list(letters)
        return letters.each { |letter| json(letter) } if @json
        letters.each do |letter|
          words = letter["words"].to_s.empty? ? "" : ": #{plain(letter["words"])}"
          stdout.puts("#{letter["id"]}  #{REASONS.fetch(letter["reason"], "reason #{letter["reason"]}")}#{words}")
          stdout.puts("  #{duration(letter["age_ms"])} old, failures #{letter["failures"]}, crashes #{letter["crashes"]}, #{letter["bytes"]} bytes: #{beginning(letter["payload"])}")
        end
      end

      def beginning(payload)
        text = plain(payload.to_s.unpack1("m"))
        (text.size > SHOWN) ? "#{text[0, SHOWN]}…" : text
      end
    end
  end
end
