# frozen_string_literal: true

require_relative "hikyaku"

module Bench
  # All entrants by name: the floors, Hikyaku, and those that the files of bench/peers add.
  module Entrants
    PEERS = File.expand_path("../peers", __dir__)
    @all = {}

    class << self
      def add(entrant) = @all[entrant.name] = entrant

      # @param suite [Suite, nil] only those that can be on its page
      def names(suite = nil) = @all.values.select { |entrant| suite.nil? || entrant.suites.include?(suite.key) }.map(&:name)

      def known?(name) = @all.key?(name)

      # @raise [KeyError]
      def fetch(name) = @all.fetch(name) { raise KeyError, "there is no entrant #{name}; there are #{names.join(", ")}" }
    end
  end

  # The least that a fan-out server can do: src/floor.c.
  class Floor < Entrant
    def command(port, _folder, settings) = [[Build.program("floor"), port.to_s, *("wait" if settings[:flood])], {}]

    # @param own [Boolean] whether topics are told apart
    def speech(match: TOPIC, topics: [match], own: false, **)
      {publish_prefix: topics.map { |topic| "topic=#{URI.encode_www_form_component(topic).gsub(/%7B([tn])%7D/, '{\1}')}&" }.join + "data=",
       **(own ? {subscribe_path: "/{t}", publish_path: "/{t}"} : {})}
    end
  end

  # The least that a broker can do: src/broker_floor.c, which logs what the level promises.
  class BrokerFloor < Broker
    def command(port, folder, settings)
      log = File.join(folder, "log")
      [[Build.program("broker_floor"), "#{settings[:host]}:#{port}", *{"written" => [log], "synced" => [log, "synced"]}[settings[:level]]], {}]
    end
  end

  # A plain TCP stream both ways at once, src/stream.c: what a link can carry.
  class LinkFloor < Broker
    # The two ends of the stream.
    StreamStage = Struct.new(:port, :link) do
      def wake = stream(1).merge("whole" => true)

      # @return [Hash] "seconds", "bytes" of each way
      def stream(megabytes)
        where = "#{link ? link.host : Entrant::LOOPBACK}:#{port}"
        out, status = Open3.capture2(*link&.load, *Server.pinned(Load::CORE, Build.program("stream"), where, megabytes.to_s))
        raise Load::Failed, "the stream ended early" unless status.success?
        JSON.parse(out)
      end
    end

    def command(port, _folder, settings) = [[Build.program("stream"), "#{settings[:host]}:#{port}"], {}]

    def stage(server, link: nil) = StreamStage.new(server.port, link)
  end

  Entrants.add Floor.new("floor", "bare send() loop in C", suites: %w[all action_cable])
  Entrants.add BrokerFloor.new("broker-floor", "floor: read, log, answer", dialect: {dialect: "beanstalkd"})
  Entrants.add BrokerFloor.new("frames-floor", "floor, in the project's frames", dialect: ->(level) { {dialect: "hikyaku", level: level} })
  Entrants.add LinkFloor.new("link-floor", "plain TCP, both ways", levels: ["memory"])
  {"c" => "C engine", "ruby" => "Ruby engine"}.each do |engine, words|
    Entrants.add Hub.new("hikyaku-#{engine}", "Hikyaku, #{words}", engine)
    Entrants.add MountedHub.new("puma-#{engine}", "Hikyaku in Puma, #{words}", engine, suites: ["all"])
    Entrants.add HikyakuBroker.new("broker-#{engine}", "Hikyaku broker, #{words}", engine)
  end
  Entrants.add Hub.new("hikyaku-c-send", "Hikyaku, C engine, without io_uring", "c", flags: ["--no-io-uring"])
  Entrants.add Hub.new("hikyaku-ruby-yjit", "Hikyaku, Ruby engine, YJIT", "ruby", yjit: true)
  Entrants.add HikyakuBroker.new("broker-ruby-yjit", "Hikyaku broker, Ruby engine, YJIT", "ruby", yjit: true)
  Dir[File.join(Entrants::PEERS, "*.rb")].sort.each { |file| require file }
end
