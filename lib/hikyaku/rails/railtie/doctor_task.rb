# frozen_string_literal: true

require "shellwords"
require_relative "../../cli/doctor"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # `bin/rails hikyaku:doctor`: what `hikyaku doctor` does, with the application's keys, and the URL under which clients find its hub.
    #
    #     bin/rails hikyaku:doctor
    #     bin/rails "hikyaku:doctor[https://staging.example.com/.well-known/mercure]"
    #     HIKYAKU_DOCTOR="--idle 300 --json" bin/rails hikyaku:doctor
    class DoctorTask < CLI::Doctor
      OPTIONS = "HIKYAKU_DOCTOR"
      TASK = "bin/rails hikyaku:doctor"
      private_constant :OPTIONS, :TASK

      summary "Look at the application's hub from the outside, as its clients do, and say what to change."
      usage %(#{OPTIONS}="[OPTION…]" bin/rails "hikyaku:doctor[URL]")
      examples(
        TASK,
        %(bin/rails "hikyaku:doctor[https://staging.example.com/.well-known/mercure]"),
        %(#{OPTIONS}="--origin https://www.example.com --idle 300" #{TASK})
      )

      def self.run(settings, url = nil, stdout: $stdout, stderr: $stderr, env: ENV)
        new(settings, stdin: $stdin, stdout: stdout, stderr: stderr, env: env).run([*words(env[OPTIONS].to_s), *url.presence])
      rescue Interrupt
        130
      rescue Error => error
        stderr.puts("hikyaku: #{CLI.printable(error.message)}")
        2
      end

      def self.words(text)
        Shellwords.split(text)
      rescue ArgumentError
        # Its own message has the text in it, and that may have a token.
        raise CLI::UsageError, "#{OPTIONS}: a quote is opened and not closed"
      end
      private_class_method :words

      def initialize(settings, **streams)
        super(**streams)
        @settings = settings
      end

      def inspect = "#<#{self.class.name}>"

      private

      def config = @settings.config

      # The application's configuration is what there is.
      def configuration(_parser)
      end

      def client_settings(_parser)
      end

      def default_hub = "the application's"

      def manual = "#{OPTIONS}=--help #{TASK}"

      # Where the application itself publishes to, which HIKYAKU_HUB may say, is no address of clients'.
      def hub = @address ||= with_path(@hub || own_hub)

      def own_hub
        known = @settings.public_url || running&.fetch(:hub_url) || (config.hub_url unless @settings.remote? || @settings.doubt)
        known or raise ConfigError, "it is not known under which URL clients find the hub: set config.hikyaku.resource_identifier, " \
          "or give it: bin/rails \"hikyaku:doctor[https://www.example.com#{config.path}]\""
      end

      def running = @running ||= @settings.running_hub

      # Another hub says itself who it is.
      def identifier
        return if @hub
        (running unless @settings.public_url)&.fetch(:resource_identifier) || config.resource_identifier
      end

      # What was configured for one hub is shown to no other.
      def make(progress)
        means = @hub ? {} : @settings.means
        @tokens << text_of(means[:token]) if means[:token] && tokens.empty?
        @given = {**means.slice(:ca_file, :insecure), **@given}
        super
      end

      def text_of(token) = token.respond_to?(:call) ? token.call : token
    end
  end
end
