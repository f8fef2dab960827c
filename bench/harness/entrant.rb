# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "tmpdir"
require "uri"
require_relative "load"

module Bench
  # A server that takes part: how it is started, and what the load generator sends to it.
  class Entrant
    TOPIC = "https://example.com/t/{t}"
    LOOPBACK = "127.0.0.1"
    ROOT = File.expand_path("../..", __dir__)
    DATA = File.join(ROOT, "tmp/bench-data") # on the disk: /tmp may be memory
    THREADS = 5 # of Puma
    BOTH = File.join(ROOT, "bench/peers/both.sh") # runs two programs
    # The first load of a stage.
    WARMUP = {subscribers: 20, messages: 5, settle: 50, topics: 1}.freeze

    attr_reader :name, :title, :suites, :doors

    # @param name [String] on the command line
    # @param title [String] in a table
    # @param suites [Array<String>] keys of the pages on which it can be
    # @param needs [Array<#prepare, #versions>] packages
    # @param doors [Array<String>] ways to publish, see {Doors}
    # @param speech [Hash] options of the load generator
    # @yield [port, folder, settings] the command, or [command, environment variables]
    def initialize(name, title, suites: ["all"], needs: [], doors: ["post"], speech: {}, &command)
      @name = name
      @title = title
      @suites = suites
      @needs = needs
      @doors = doors
      @speech = speech
      @command = command
    end

    # @raise [Unavailable]
    def prepare = @needs.each(&:prepare)

    def versions = @needs.map(&:versions).reduce({}, :merge)

    # @param folder [String] removed afterwards
    # @param settings [Hash] `host:`, the address to listen on, and others of the scenario
    # @return [Array(Array<String>, Hash)] command, and environment variables
    def command(port, folder, settings)
      words = @command.call(port, folder, settings)
      words.first.is_a?(Array) ? words : [words, {}]
    end

    # Options of the load generator. In the texts, {t} is a topic's number, {n} that of the subscriber or message.
    #
    # @param options [Hash] of the scenario: `match:`, `type:` and `topics:` of a hub, `door:`, `own:`
    def speech(**_options) = @speech

    # Starts it, yields once it listens, and stops it.
    #
    # @param link [Link, nil] between it and the load; nil: the loopback
    # @param folder [String, nil] of its data, which stays; nil: a folder of its own
    def run(link: nil, folder: nil, **settings, &block)
      folder ? start(folder, link, settings, &block) : in_folder { |own| start(own, link, settings, &block) }
    end

    # @return [Stage]
    def stage(server, link: nil, **options)
      Stage.new(server, self.class::WARMUP, **speech(**options), **(link ? {host: link.host, within: link.load} : {}))
    end

    def in_folder(&block)
      FileUtils.mkdir_p(DATA)
      Dir.mktmpdir(name, DATA) do |folder|
        File.chmod(0o755, folder)
        yield folder
      end
    end

    def inspect = "#<#{self.class} #{name}>"

    def start(folder, link, settings, &block)
      port = Server.free_port
      words, environment = command(port, folder, {host: link ? link.host : LOOPBACK, **settings})
      Server.run(words, port: port, env: environment, within: link ? link.server : [], &block)
    end
    private :start

    # The command of Puma with a rackup file.
    def self.puma(rackup, host, port, executable = [RbConfig.ruby, Gem.bin_path("puma", "puma")])
      [*executable, "--bind", "tcp://#{host}:#{port}", "--threads", "#{THREADS}:#{THREADS}", "--environment", "production", "--quiet", rackup]
    end
  end

  # A message broker. A level is what an acknowledgement promises: "memory" nothing beyond the process, "written" that the kernel
  # has the message, "synced" that the disk has it.
  class Broker < Entrant
    LEVELS = %w[memory written synced].freeze
    WARMUP = {messages: 50, senders: 2, receivers: 2, settle: 20}.freeze

    attr_reader :levels

    # @param dialect [Hash] options of the load generator; a Proc gets the level
    def initialize(name, title, dialect: {}, levels: LEVELS, **more, &command)
      super(name, title, suites: ["broker"], **more, &command)
      @dialect = dialect
      @levels = levels
    end

    def command(port, folder, settings) = super(port, folder, {level: levels.first, **settings})

    def speech(level: levels.first, **) = {program: "queue_load", **(@dialect.is_a?(Proc) ? @dialect.call(level) : @dialect)}
  end
end
