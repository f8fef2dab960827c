# frozen_string_literal: true

require_relative "broker_client"

module Hikyaku
  module CLI
    # `hikyaku identities`
    class Identities < BrokerClient
      summary "List the identities whose numbered messages the broker remembers, those that it would forget first at the top, or drop one."
      usage "hikyaku identities [OPTION…] [PREFIX]"
      examples(
        "hikyaku identities",
        "hikyaku identities --json billing | jq .idle_ms",
        "hikyaku identities --drop billing-1"
      )

      private

      def operands = %w[PREFIX]

      def options(parser)
        parser.separator("\n  PREFIX   with which they begin\n\nWhat:")
        value_option(parser, "--drop ID", "Forget this one, of which no client is connected: a message that it sends again may be taken twice") { |text| @drop = text }
        value_option(parser, "--limit N", "List so many at most; 1000 unless given") { |text| @limit = whole("--limit", text) }
        parser.on("--json", *wrap("Print each as one line of JSON with all its figures")) { @json = true }
        broker_options(parser)
      end

      def call(prefix = "")
        raise UsageError, "--drop forgets one identity, and lists none: give no PREFIX" if @drop && !prefix.empty?
        raise UsageError, "--drop: an identity has 1 to 255 bytes" unless @drop.nil? || @drop.bytesize.between?(1, 255)
        connect(identity: "") { |client| @drop ? drop(client) : list(client.identities(prefix, limit: @limit || 1000)) }
        0
      end

      def drop(client)
        raise Hikyaku::Broker::Client::Failure, "the broker remembers no identity #{@drop}" unless client.drop_identity(@drop)
        stdout.puts("#{plain(@drop)} dropped")
      end

      def list(identities)
        return identities.each { |identity| json(identity) } if @json
        table([%w[IDENTITY CONNECTED IDLE SETTLED], *identities.map { |identity| row(identity) }])
      end

      def row(identity)
        connected = identity["connected"]
        [plain(identity["identity"]), connected ? "yes" : "no", connected ? "" : duration(identity["idle_ms"]), identity["low"]]
      end
    end
  end
end
