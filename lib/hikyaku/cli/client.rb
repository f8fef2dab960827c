# frozen_string_literal: true

require_relative "command"
require_relative "../config"

module Hikyaku
  module CLI
    # For commands that read the hub's configuration: adds the settings as options, and puts a Config together.
    module Settings
      # What a client needs to find the hub and to sign for it.
      CLIENT = %i[dev listen path issuer publisher_key subscriber_key alg publisher_alg subscriber_alg resource_identifier].freeze

      private

      def settings(parser, list)
        @flags = {}
        list.group_by(&:group).each do |group, members|
          parser.separator("\n#{group}:")
          members.each { |setting| setting(parser, setting) if setting.flag? }
        end
      end

      def configuration(parser)
        parser.separator("\nConfiguration (flags count more than variables, those more than the file):")
        value_option(parser, "--config FILE", "YAML file whose keys are the flags' names in snake case (HIKYAKU_CONFIG)") { |path| @file = path }
      end

      def client_settings(parser)
        settings(parser, CLIENT.map { |name| Config::Settings[name] })
      end

      def config(serving: false)
        @config ||= Config.load(flags: @flags, env: env, file: @file, serving: serving) { |setting| flag(setting) }
      end

      def flag(setting) = setting.flags.first

      def setting(parser, setting)
        if setting.switch?
          parser.on("--[no-]#{flag(setting)}", *wrap(describe(setting))) { |value| @flags[setting.name] = value }
        else
          value_option(parser, "--#{flag(setting)} #{setting.type.placeholder}", describe(setting)) { |value| take(setting, value) }
        end
      end

      def take(setting, value)
        setting.list? ? (@flags[setting.name] ||= []) << value : @flags[setting.name] = value
      end

      def describe(setting)
        return "#{setting.help}; may be repeated" if setting.list?
        return setting.help if setting.default_text == "none" || setting.switch?
        "#{setting.help} (#{setting.default_text})"
      end
    end

    # What commands share that talk to a hub: where it is, and the token to show it.
    class Client < Command
      include Settings

      # Seconds that a token lives that is made for one request.
      MOMENT = 60
      private_constant :MOMENT

      def run(argv)
        super
      rescue ConfigError => error
        raise ConfigError, error.message.sub("say insecure: true", "give --insecure")
      end

      private

      def hub_options(parser)
        parser.separator("\nHub:")
        value_option(parser, "--hub URL", "http(s)://HOST/PATH, unix:SOCKET or unix:SOCKET:/PATH (HIKYAKU_HUB; else what the configuration says)") { |url| @hub = url }
        value_option(parser, "--token TOKEN", "Access token (HIKYAKU_TOKEN; else one is made with the key of the configuration)") { |token| @token = token }
        parser.on("--insecure", *wrap("Let the token travel over plain HTTP to another machine")) { @insecure = true }
        configuration(parser)
        client_settings(parser)
      end

      # Where to connect to.
      def hub
        @address ||= with_path(@hub || given(env["HIKYAKU_HUB"]) || configured_hub)
      end

      def configured_hub
        address = config.address
        if config.given?(:resource_identifier) && config.hub_url == config.resource_identifier then config.hub_url
        elsif address.unix? then "unix:#{address.path}:#{config.path}"
        else address.url(config.path)
        end
      end

      # A host alone stands for the hub of the configured path there.
      def with_path(url) = url.match?(%r{\Ahttps?://[^/?#]+/?\z}i) ? url.chomp("/") + config.path : url

      # What tokens for it must be made for: the hub's URL is the obvious identifier, unless another is configured.
      def audience
        return config.resource_identifier if config.given?(:resource_identifier) || !hub.match?(/\Ahttps?:/i)
        hub
      end

      def token = given(@token) || given(env["HIKYAKU_TOKEN"])

      def given(text) = (text unless text.to_s.strip.empty?)

      def maker(role)
        require_relative "../web/token_maker"
        Web::TokenMaker.for(config, role: role, issuer: (config.issuer if config.given?(:issuer)), audience: audience)
      end

      def key?(role) = config.issuer_list.any? { |issuer| issuer.signing(role).last }

      def publisher_token(topics)
        return token if token
        unless key?(:publisher)
          raise UsageError, "there is no token and no key to make one: give --token, HIKYAKU_TOKEN, --publisher-key or --dev"
        end
        maker(:publisher).call(publish: topics, expires_in: MOMENT)
      end
    end

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

    # `hikyaku disconnect`
    class Disconnect < Client
      summary "Close all streams of a subject: of those who came with a token that names it as sub."
      usage "hikyaku disconnect [OPTION…] SUBJECT"
      examples(
        "hikyaku disconnect --dev urn:user:42",
        "hikyaku disconnect --config hub.yml --revoke urn:user:42"
      )

      private

      def operands = %w[SUBJECT]

      def options(parser)
        parser.separator("\n  SUBJECT   the sub of the tokens\n\nWhat:")
        parser.on("--revoke", *wrap("Also refuse tokens of the subject that were issued before now")) { @revoke = true }
        hub_options(parser)
      end

      def call(subject = nil)
        raise UsageError, "give a SUBJECT; see hikyaku disconnect --help" if subject.to_s.empty?
        require_relative "../client/publisher"
        publisher = Publisher.new(hub, token: publisher_token([topic(subject)]), insecure: !!@insecure)
        count = publisher.disconnect(subject: subject, revoke: !!@revoke)
        stdout.puts("#{count} #{(count == 1) ? "stream" : "streams"} closed")
      ensure
        publisher&.close
      end

      # The path that Publisher#disconnect deletes: a token that grants publishing to it as a topic suffices.
      def topic(subject)
        path = hub[%r{\A(?:https?://[^/?#]+|unix:(?://)?[^:]*:?)(/[^?#]*)?}i, 1] || config.path
        # RFC 3986, section 2.3: everything but unreserved characters.
        "#{path}/subscribers/#{subject.b.gsub(/[^A-Za-z0-9._~-]/n) { |byte| format("%%%02X", byte.ord) }}"
      end
    end
  end
end
