# frozen_string_literal: true

require "json"
require_relative "client"

module Hikyaku
  module CLI
    # `hikyaku token`
    class Token < Command
      include Settings

      summary "Make an access token with the key of the configuration, or explain one."
      usage "hikyaku token [OPTION…]"
      examples(
        "hikyaku token --dev --publish '*'",
        "hikyaku token --config hub.yml --subscribe https://example.com/users/42/inbox --subject urn:user:42 --expires-in 600",
        "hikyaku token --publisher-key file:private.pem --issuer https://example.com --resource-identifier https://hub.example.com/.well-known/mercure --publish-pattern 'https://example.com/books/:id'",
        "hikyaku token --publisher-key file:private.pem --send 'orders.*' --receive 'mail' --subject worker-1",
        "hikyaku token --dev --explain \"$TOKEN\""
      )

      ROLES = {"publisher" => :publisher, "subscriber" => :subscriber}.freeze
      # What the explanation needs beside what a client does.
      NAMES = [*CLIENT, :jwks, :legacy, :max_token_bytes, :max_token_details, :max_token_topics, :max_pattern_bytes].freeze
      private_constant :ROLES, :NAMES

      private

      def options(parser)
        @publish = []
        @subscribe = []
        @broker = {}
        @expires_in = 3600
        grant_options(parser)
        broker_options(parser)
        claim_options(parser)
        parser.separator("\nExplanation:")
        value_option(parser, "--explain TOKEN", "Print what a token permits and, check by check, why it would be refused; - reads it from the standard input") { |token| @explain = token }
        configuration(parser)
        settings(parser, (NAMES - [:legacy]).map { |name| Config::Settings[name] })
      end

      def grant_options(parser)
        parser.separator("\nGrants (each may be repeated):")
        value_option(parser, "--publish TOPIC", "May publish to this topic; * is every topic") { |topic| @publish << exact(topic) }
        value_option(parser, "--publish-pattern PATTERN", "May publish to topics that match this URL pattern") { |text| @publish << pattern(text) }
        value_option(parser, "--subscribe TOPIC", "May receive private updates of this topic; * is every topic") { |topic| @subscribe << exact(topic) }
        value_option(parser, "--subscribe-pattern PATTERN", "May receive private updates of topics that match this URL pattern") { |text| @subscribe << pattern(text) }
        value_option(parser, "--payload JSON", "Object that others see beside the subscriber's subscriptions") { |text| @payload = text }
      end

      def broker_options(parser)
        parser.separator("\nGrants of the broker (each may be repeated; a name of a queue, or a beginning of names with * at its end):")
        {send: "May send to these queues", receive: "May receive from these queues; @IDENTITY is that of a client", manage: "May look into these queues, replay and drop"}
          .each { |right, help| value_option(parser, "--#{right} PATTERN", help) { |text| (@broker[right] ||= []) << text } }
      end

      def claim_options(parser)
        parser.separator("\nToken:")
        value_option(parser, "--subject SUB", "Whom the token speaks for (a random one)") { |text| @subject = text }
        value_option(parser, "--expires-in SECONDS", "How long it is valid (3600)") { |text| @expires_in = seconds(text) }
        value_option(parser, "--key-id KID", "The key's id, for hubs that know several") { |text| @key_id = text }
        value_option(parser, "--role ROLE", "publisher or subscriber: whose key signs; follows from the grants") { |text| @role = role(text) }
        parser.on("--legacy", *wrap("A token of Mercure 0.x; with --explain, for a hub that accepts them")) { @legacy = true }
      end

      def call
        return explain if @explain
        raise UsageError, "say what the token permits: give --publish TOPIC or --subscribe TOPIC, or for the broker --send PATTERN or --receive PATTERN" if [@publish, @subscribe, @broker].all?(&:empty?)
        check_grants
        token = make
        if token.bytesize > config.max_token_bytes
          raise UsageError, "the token would have #{token.bytesize} bytes, more than the #{config.max_token_bytes} of max_token_bytes"
        end
        stdout.puts(token)
      end

      def make
        require_relative "../web/token_maker"
        maker = Web::TokenMaker.for(config, role: @role || role_of_grants, issuer: (config.issuer if config.given?(:issuer)))
        maker.call(publish: @publish, subscribe: @subscribe, payload: payload, broker: (@broker if @broker.any?), expires_in: @expires_in, legacy: !!@legacy, subject: @subject, key_id: @key_id)
      end

      # To send to the broker and to manage takes the publishers' key; to receive, either.
      def role_of_grants
        return Web::TokenMaker.role_of(@publish, @subscribe) if @broker.empty?
        publisher = @publish.any? || @broker.key?(:send) || @broker.key?(:manage) || @subscribe.empty?
        return :publisher if publisher && @subscribe.empty?
        publisher ? nil : :subscriber
      end

      # What the hub would refuse is not signed.
      def check_grants
        require_relative "../hub/matcher"
        (@publish + @subscribe).each do |one|
          if @legacy && one[:match_type] == "urlpattern"
            raise UsageError, "a token of Mercure 0.x knows no URL patterns: give a URI template to --publish or --subscribe"
          end
          type = @legacy ? "uri_template" : one[:match_type]
          Hub::Matcher.build(type: type, pattern: one[:match], base: config.hub_url, max_bytes: config.max_pattern_bytes)
        end
      end

      def payload
        return unless @payload
        raise UsageError, "--payload says nothing without --subscribe" if @subscribe.empty?
        require "json"
        value = JSON.parse(@payload)
        raise UsageError, "--payload: expected a JSON object" unless @legacy || value.is_a?(Hash)
        value
      rescue JSON::ParserError
        raise UsageError, "--payload: expected a JSON object"
      end

      def explain
        token = ((@explain == "-") ? stdin.read : @explain).to_s.strip
        raise UsageError, "--explain: the token is empty" if token.empty?
        roles = @role ? [@role] : ROLES.values
        results = roles.map { |role| authorization.explain(token, role) }
        stdout.puts(Explanation.new(results).to_s)
        (results.any? { |result| result[:valid] }) ? 0 : 1
      end

      def authorization
        require_relative "../web/authorization"
        @authorization ||= Web::Authorization.new(
          issuers: config.issuer_list, resource_identifier: config.resource_identifier, hub_url: config.hub_url, legacy: !!@legacy || config.legacy,
          limits: NAMES.grep(/\Amax_/).to_h { |name| [name, config.public_send(name)] }
        )
      end

      def exact(text) = {match: text, match_type: "exact"}

      def pattern(text) = {match: text, match_type: "urlpattern"}

      def role(text) = ROLES[text] || raise(UsageError, "--role: expected publisher or subscriber, got #{text.inspect}")

      def seconds(text)
        raise UsageError, "--expires-in: expected a whole number of seconds, 1 or more, got #{text.inspect}" unless text.match?(/\A[1-9]\d{0,9}\z/)
        text.to_i
      end
    end

    # What Web::Authorization#explain says of a token, for people to read.
    class Explanation
      MARKS = {true => "ok", false => "NO"}.freeze
      private_constant :MARKS

      def initialize(results)
        @results = results
      end

      def to_s
        [part("Header", @results.first[:header]), part("Claims", @results.first[:claims]), *@results.map { |result| verdict(result) }].compact.join("\n\n")
      end

      private

      def part(title, object)
        "#{title}:\n#{indent(CLI.plain(JSON.pretty_generate(object)))}" if object
      end

      def verdict(result)
        title = "As a #{result[:role]}'s token: #{result[:valid] ? "accepted" : "refused"}#{" (Mercure 0.x)" if result[:legacy]}"
        [title, *(result[:valid] ? permits(result) : checks(result))].join("\n")
      end

      # Those that could not be made any more say nothing.
      def checks(result)
        result[:checks].reject { |check| check[:ok].nil? }
          .map { |check| "  #{MARKS.fetch(check[:ok])}  #{check[:check]}: #{CLI.printable(check[:message])}" }
      end

      def permits(result)
        action = (result[:role] == :publisher) ? :publish : :subscribe
        granted = result[:permits][action]
        return ["  It permits nothing: it grants no topic to #{action}#{" to" if action == :publish}."] if granted.empty?
        ["  It permits to #{action} to:"] + granted.map { |one| "    #{CLI.printable(one[:pattern])} (#{one[:type]})#{" with payload #{CLI.plain(JSON.generate(one[:payload]))}" if one[:payload]}" }
      end

      def indent(text) = text.gsub(/^/, "  ")
    end
  end
end
