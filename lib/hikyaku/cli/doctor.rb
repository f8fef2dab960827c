# frozen_string_literal: true

require "json"
require_relative "client"

module Hikyaku
  module CLI
    # `hikyaku doctor`
    class Doctor < Client
      summary "Look at a running hub from the outside, as its clients do, and say what to change."
      usage "hikyaku doctor [OPTION…] URL"
      examples(
        "hikyaku doctor https://hub.example.com/.well-known/mercure",
        "hikyaku doctor --config hub.yml --origin https://www.example.com https://hub.example.com/.well-known/mercure",
        "hikyaku doctor --publisher-key file:private.pem --subscriber-key file:private.pem --issuer https://example.com --idle 300 https://hub.example.com/.well-known/mercure",
        "hikyaku doctor --dev --idle 0 --json http://127.0.0.1:3030/.well-known/mercure"
      )

      NUMBER = /\A\d{1,9}(?:\.\d{1,6})?\z/
      ROLES = %i[publisher subscriber].freeze
      # Those that are run whatever is asked for; what looks is loaded only when it is to look.
      ALWAYS = "certificate, reach, metadata, publisher, subscriber"
      private_constant :NUMBER, :ROLES, :ALWAYS

      private

      def operands = %w[URL]

      def options(parser)
        @tokens = []
        @given = {}
        parser.separator("\n  URL   of the hub, as its clients use it (#{default_hub})\n\nWhat:")
        what_options(parser)
        way_options(parser)
        parser.separator("\nOutput:")
        parser.on("--json", *wrap("Print each finding as one line of JSON")) { @json = true }
        parser.on("--strict", *wrap("End with code 1 for warnings, too")) { @strict = true }
        parser.separator("\nAs whom:")
        value_option(parser, "--token TOKEN", "Access token, for what it grants; may be repeated (HIKYAKU_TOKEN; else made with the keys of the configuration)") { |token| @tokens << token }
        parser.on("--insecure", *wrap("Let tokens travel over plain HTTP to another machine")) { @given[:insecure] = true }
        configuration(parser)
        client_settings(parser)
      end

      def default_hub = "HIKYAKU_HUB; else what the configuration says"

      def what_options(parser)
        value_option(parser, "--idle SECONDS", "How long to hold a stream on which nothing happens (75); 0 is not at all") { |text| @given[:idle] = number("--idle", text) }
        value_option(parser, "--patience SECONDS", "Until when what should come at once must be there (1)") { |text| @given[:patience] = number("--patience", text) }
        value_option(parser, "--connections N", "Streams with which several hubs are looked for (6)") { |text| @given[:connections] = number("--connections", text).to_i }
        value_option(parser, "--origin ORIGIN", "Whose pages use the hub, as https://www.example.com: may they?") { |text| @given[:origin] = text }
        value_option(parser, "--page URL", "A page of the application that should lead to the hub with Link") { |text| @given[:page] = text }
        value_option(parser, "--topic TOPIC", "On which to publish and listen (a new one)") { |text| @given[:topic] = text }
        value_option(parser, "--only CHECK", "This check, and what fails of those that all others need (#{ALWAYS}); may be repeated") { |text| (@given[:only] ||= []) << text }
        value_option(parser, "--skip CHECK", "Not this check; of those that all others need, what fails is shown all the same; may be repeated") { |text| (@given[:skip] ||= []) << text }
      end

      def way_options(parser)
        parser.separator("\nThe way:")
        value_option(parser, "--connect HOST:PORT", "Connect there, whatever the URL says: one server of several, or before its name leads there") { |text| @given[:connect] = text }
        value_option(parser, "--http-port PORT", "Where plain HTTP is answered (80 for a URL of port 443)") { |text| @given[:http_port] = port(text) }
        value_option(parser, "--behind NAME", "What stands in front, where it does not say so: nginx, Caddy, Apache, Thruster, kamal-proxy, Cloudflare; may be repeated") { |text| (@given[:behind] ||= []) << text }
        value_option(parser, "--ca-file FILE", "Certificates to trust in place of the system's") { |text| @given[:ca_file] = text }
      end

      def call(url = nil)
        @hub = given(url)
        require_relative "../doctor"
        progress = Progress.new(stderr)
        report = Report.new(stdout, json: !!@json)
        note_missing_extension
        doctor = make(progress)
        begin
          doctor.run do |finding|
            progress.clear
            report.add(finding)
          end
        ensure
          progress.clear
        end
        report.finish(doctor.stopped)
        report.code(strict: !!@strict)
      end

      # What a hub and a broker of this installation would lack.
      def note_missing_extension
        require "hikyaku/native"
      rescue LoadError => error
        stderr.puts("hikyaku: the extension in C is not available in this installation (#{error.message}): engines, and checksums of journals, run in Ruby, " \
          "which is slow; where there is a C compiler, install the gem again")
      end

      def make(progress)
        Hikyaku::Doctor.new(hub, keys: keys, tokens: tokens, audience: identifier, progress: progress, **@given)
      rescue ConfigError => error
        # Options have the names of flags there; what is said of a flag that allows something, Client words.
        raise ConfigError, error.message.sub(/\A(?=\w+: )\w+/) { |name| "--#{name.tr("_", "-")}" }
      end

      # What the hub calls itself, if that is said.
      def identifier = (config.resource_identifier if config.given?(:resource_identifier))

      def tokens = @tokens.empty? ? [given(env["HIKYAKU_TOKEN"])].compact : @tokens

      # By role, of the issuer that the configuration names, or of the first that has one.
      def keys
        own, others = config.issuer_list.partition { |issuer| issuer.issuer == config.issuer }
        ROLES.to_h { |role|
          issuer = [*own, *others].find { |each| each.signing(role).last }
          [role, issuer && {issuer: issuer.issuer, alg: issuer.signing(role).first, key: issuer.signing(role).last}]
        }.compact
      end

      def number(option, text)
        raise UsageError, "#{option}: expected a number of seconds, got #{text.inspect}" unless text.match?(NUMBER)
        text.to_f
      end

      def port(text)
        raise UsageError, "--http-port: expected a port, got #{text.inspect}" unless text.match?(/\A\d{1,5}\z/) && text.to_i.between?(1, 65_535)
        text.to_i
      end

      # What is waited for: on a terminal in one line that goes away again, elsewhere only what takes long, a line each.
      class Progress
        CLEAR = "\r\e[K"
        private_constant :CLEAR

        def initialize(out)
          @out = out
          @terminal = out.respond_to?(:tty?) && out.tty?
          @said = nil
        end

        def call(what, seconds)
          return @out.print("#{CLEAR}… #{CLI.printable(what)}#{", #{seconds.ceil} s" if seconds}") if @terminal
          return if seconds.nil? || what == @said
          @said = what
          @out.puts("hikyaku: #{CLI.printable(what)} (#{seconds.ceil} s)")
        end

        def clear
          @out.print(CLEAR) if @terminal
        end
      end

      # What was found, as it is found: a list to read, or lines of JSON.
      class Report
        LEVELS = {ok: "ok", warn: "warn", fail: "FAIL", skip: "-"}.freeze
        # Of the level, and of the name.
        WIDTHS = [6, 15].freeze
        private_constant :LEVELS, :WIDTHS

        def initialize(out, json:)
          @out = out
          @json = json
          @counts = Hash.new(0)
        end

        def add(finding)
          @counts[finding.level] += 1
          @out.puts(@json ? JSON.generate(finding.to_h) : lines(finding))
          @out.flush
        end

        def finish(stopped)
          return if @json
          @out.puts("", "#{summary}#{"; the rest was not checked, because #{stopped}" if stopped}")
        end

        def code(strict:) = (@counts[:fail].positive? || (strict && @counts[:warn].positive?)) ? 1 : 0

        private

        def lines(finding)
          indent = " " * (WIDTHS.sum + 2)
          ["#{LEVELS.fetch(finding.level).ljust(WIDTHS[0])}#{finding.check.ljust(WIDTHS[1])}#{CLI.printable(finding.message)}",
            *finding.advice.map { |line| "#{indent}#{line}" }]
        end

        def summary
          parts = {fail: "failed", warn: "to look at", ok: "well", skip: "not checked"}
          parts.filter_map { |level, words| "#{@counts[level]} #{words}" if @counts[level].positive? }.join(", ")
        end
      end
    end
  end
end
