# frozen_string_literal: true

require "json"
require "shellwords"
require_relative "../harness/hub"
require_relative "../harness/peer_gems"

module Bench
  # What the entrants that are one Rails application in Puma, rails/application.rb, have in common. There are up to four doors
  # through which one can publish:
  #
  #     action   a POST to an action of the application
  #     within   a thread of the application publishes as it is told, without a request that Puma and Rails see: a job,
  #              or a callback after a commit
  #     hub      Hikyaku: a POST to the hub's own address
  #     socket   Action Cable: a command over the WebSocket of a client that subscribes
  module InRails
    FOLDER = File.expand_path("rails", __dir__)
    THREADS = 5
    FORM = "topic={t}&data="
    GEMS = %w[rails puma].freeze

    def suites = [Suite::ACTION_CABLE]

    def prepare = PeerGems.prepare

    def versions = PeerGems.versions(*self.class::GEMS)

    # @return [Stage]
    def stage(server, door: doors.first, **more)
      super.tap { |stage| stage.speech[:publish_port] = Integer(File.read(@ports.fetch(server.port))) if door == "within" }
    end

    private

    def puma(port, folder, host, environment)
      (@ports ||= {})[port] = File.join(folder, "within")
      [[*PeerGems.command("puma"), "--bind", "tcp://#{host}:#{port}", "--threads", "#{THREADS}:#{THREADS}", "--environment", "production",
        "--quiet", File.join(FOLDER, "config.ru")],
        {**PeerGems.environment, "BENCH_FOLDER" => folder, "BENCH_HOST" => host, **environment}]
    end

    def form_to(path) = {publish_path: path, publish_prefix: FORM}

    # With Action Cable.
    class Cable < Entrant
      include InRails

      IDENTIFIER = JSON.generate(channel: "NewsChannel", topic: "{t}")

      def doors = %w[action within socket]

      def command(port, folder, settings) = puma(port, folder, settings[:host], "BENCH_PUSH" => "cable")

      # Ready-made commands: a message goes between the two parts of the second.
      def speech(door: "action", **)
        prefix, suffix = JSON.generate(command: "message", identifier: IDENTIFIER, data: JSON.generate(text: "|", action: "speak")).split("|")
        {subscribe_path: "/cable", cable: JSON.generate(command: "subscribe", identifier: IDENTIFIER),
         **((door == "socket") ? {speak: true, publish_prefix: prefix, publish_suffix: suffix} : form_to("/publish"))}
      end
    end

    # The same through Redis, whose figures are in its own.
    class CableOverRedis < Cable
      SCRIPT = File.join(FOLDER, "with_redis.sh")
      GEMS = [*InRails::GEMS, "redis"].freeze

      def prepare
        super
        redis.prepare
      end

      def versions = super.merge(redis.versions)

      def command(port, folder, settings)
        redis_port = Server.free_port
        puma, environment = super
        server, = redis.command(redis_port, folder, level: "memory", host: Entrant::LOOPBACK)
        [["/bin/sh", SCRIPT, Shellwords.join(server), *puma],
          environment.merge("BENCH_REDIS" => "redis://#{Entrant::LOOPBACK}:#{redis_port}")]
      end

      private

      def redis = Entrants.fetch("redis")
    end

    # With Hikyaku mounted.
    class Mounted < Hub
      include InRails

      def doors = %w[action within hub]

      def command(port, folder, settings)
        puma(port, folder, settings[:host], "BENCH_PUSH" => "hikyaku", "BENCH_HUB" => JSON.generate(configuration(folder, settings)))
      end

      def speech(door: "action", **)
        (door == "hub") ? super : super.except(:publish_header).merge(form_to("/publish"))
      end
    end
  end

  Entrants.add InRails::Cable.new("cable-async", "Action Cable, async")
  Entrants.add InRails::CableOverRedis.new("cable-redis", "Action Cable, Redis")
  Entrants.add InRails::Mounted.new("c", "rails-c", "Hikyaku in Rails, C engine")
  Entrants.add InRails::Mounted.new("ruby", "rails-ruby", "Hikyaku in Rails, Ruby engine")
end
