# frozen_string_literal: true

require_relative "client"

module Hikyaku
  module CLI
    # `hikyaku subscribe`
    class Subscribe < Client
      # Seconds that a token lives; another is made before it ends.
      LIFETIME = 3600
      private_constant :LIFETIME

      summary "Receive updates and print them as they come; connects again by itself."
      usage "hikyaku subscribe [OPTION…]"
      examples(
        "hikyaku subscribe --dev --match https://example.com/books/1",
        "hikyaku subscribe --dev --pattern 'https://example.com/books/:id' --last-event-id earliest",
        "hikyaku subscribe --hub https://hub.example.com/.well-known/mercure --match '*' --json --count 10"
      )

      private

      def options(parser)
        @parameters = []
        parser.separator("\nWhich:")
        value_option(parser, "--match TOPIC", "Exactly this topic, or * for all; may be repeated") { |text| matcher("match", text) }
        value_option(parser, "--pattern PATTERN", "Topics that match this URL pattern, as https://example.com/books/:id; may be repeated") { |text| matcher("match_urlpattern", text) }
        value_option(parser, "--topic TOPIC", "As Mercure 0.x has it: a topic or a URI template; may be repeated") { |text| matcher("topic", text) }
        value_option(parser, "--last-event-id ID", "Begin after this event; earliest for all that the hub still has") { |id| @last_event_id = id }
        parser.on("--public", *wrap("Send no token, so that only public updates come")) { @public = true }
        output_options(parser)
        hub_options(parser)
      end

      def output_options(parser)
        parser.separator("\nOutput:")
        parser.on("--json", *wrap("Print each event as one line of JSON with id, type and data")) { @json = true }
        value_option(parser, "--count N", "End after so many events") { |text| @count = positive("--count", text, /\A[1-9]\d{0,17}\z/).to_i }
        value_option(parser, "--exit-after SECONDS", "End after this time") { |text| @seconds = positive("--exit-after", text, /\A\d{1,9}(?:\.\d{1,6})?\z/).to_f }
      end

      def matcher(name, text) = @parameters << [name, text]

      def positive(option, text, format)
        raise UsageError, "#{option}: expected a number greater than 0, got #{text.inspect}" unless text.match?(format) && text.to_f > 0
        text
      end

      def call
        raise UsageError, "say which topics: give --match or --pattern; see hikyaku subscribe --help" if @parameters.empty?
        require_relative "../client/event_source"
        source = EventSource.new(hub, params: @parameters, token: token_source, last_event_id: @last_event_id.to_s, insecure: !!@insecure,
          on_open: -> { @opened = true }, on_error: method(:trouble))
        alarm(source)
        receive(source)
        0
      ensure
        @alarm&.kill
      end

      # Who was there comes back; who never was is probably not at this address.
      def trouble(error)
        message = CLI.printable(error.message)
        raise Failed, message unless @opened
        stderr.puts("hikyaku: #{message}; trying again")
      end

      def receive(source)
        source.each do |event|
          show(event)
          break if @count && (@count -= 1).zero?
        end
      rescue EventSource::EventTooLarge => error
        raise Failed, error.message
      end

      def alarm(source)
        return unless @seconds
        @alarm = Thread.new do
          sleep @seconds
          source.close
        end
      end

      def show(event)
        stdout.puts(@json ? json(event) : text(event))
        # What is read by a program is wanted now, not when a buffer is full.
        stdout.flush
      end

      def json(event)
        require "json"
        JSON.generate(id: event.id, type: event.type, data: event.data)
      end

      # As on the wire.
      def text(event)
        lines = []
        lines << "event: #{event.type}" unless event.type == "message"
        lines << "id: #{event.id}" unless event.id.empty?
        lines.concat(event.data.split("\n", -1).map { |line| "data: #{line}" })
        "#{lines.join("\n")}\n\n"
      end

      def token_source
        return if @public
        return token if token
        return unless key?(:subscriber)
        maker = maker(:subscriber)
        -> { maker.call(**grants, expires_in: LIFETIME) }
      end

      # A 0.x topic is a URI template, for which only a 0.x token has a word.
      def grants
        legacy = @parameters.any? { |name, _| name == "topic" }
        topics = @parameters.map do |name, text|
          (name == "match_urlpattern") ? {match: text, match_type: "urlpattern"} : text
        end
        {subscribe: topics.uniq, legacy: legacy}
      end
    end
  end
end
