# frozen_string_literal: true

require_relative "client"

module Hikyaku
  module CLI
    # `hikyaku publish`
    class Publish < Client
      summary "Publish an update and print its event id."
      usage "hikyaku publish [OPTION…] TOPIC [DATA]"
      examples(
        "hikyaku publish --dev https://example.com/books/1 '{\"title\": \"Dune\"}'",
        "hikyaku publish --dev --private --topic https://example.com/users/42 https://example.com/books/1 changed",
        "date | hikyaku publish --hub https://hub.example.com/.well-known/mercure --token \"$TOKEN\" https://example.com/clock -"
      )

      private

      def operands = %w[TOPIC DATA]

      def options(parser)
        @topics = []
        @fields = {}
        parser.separator("\n  TOPIC   the canonical topic, best a URL\n  DATA    the content; - reads it from the standard input; empty unless given\n\nUpdate:")
        value_option(parser, "--topic TOPIC", "An alternate topic; may be repeated") { |topic| @topics << topic }
        parser.on("--private", *wrap("Only for readers whose token grants one of the topics")) { @fields[:private] = true }
        value_option(parser, "--id ID", "Event id, in place of the hub's own") { |id| @fields[:id] = id }
        value_option(parser, "--type TYPE", "Event type") { |type| @fields[:type] = type }
        value_option(parser, "--retry MILLISECONDS", "Time after which clients should reconnect when they are cut off") { |text| @fields[:retry_after] = milliseconds(text) }
        hub_options(parser)
      end

      def call(topic = nil, data = "")
        raise UsageError, "give a TOPIC; see hikyaku publish --help" unless topic
        topics = [topic, *@topics].uniq
        data = stdin.read.to_s.dup.force_encoding(Encoding::UTF_8) if data == "-"

        require_relative "../client/publisher"
        publisher = Publisher.new(hub, token: publisher_token(topics), insecure: !!@insecure)
        stdout.puts(publisher.publish(topics: topics, data: data, **@fields))
      ensure
        publisher&.close
      end

      def milliseconds(text)
        raise UsageError, "--retry: expected a whole number of milliseconds, got #{text.inspect}" unless text.match?(/\A\d{1,15}\z/)
        text.to_i
      end
    end
  end
end
