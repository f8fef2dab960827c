# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require_relative "broker_stage"
require_relative "build"
require_relative "entrant"

module Bench
  # A broker that takes part: how it is started for each level, and what the load is to speak.
  #
  # A level is what an acknowledgement promises: "memory" nothing beyond the process; "written" that the kernel has it; "synced"
  # that the disk has it.
  class Broker < Entrant
    LEVELS = %w[memory written synced].freeze
    ROOT = File.expand_path("../..", __dir__)
    DATA = File.join(ROOT, "tmp/bench-data") # on the disk: /tmp may be memory
    HOST = "127.0.0.1"
    START_SECONDS = 180 # a broker may have a million messages to look at first

    # @return [Array<String>] those that it has
    attr_reader :levels

    # @param name [String] on the command line
    # @param title [String] in a table
    # @param levels [Array<String>]
    def initialize(name, title, levels: LEVELS)
      super(name, title)
      @levels = levels
    end

    def suites = [Suite::BROKER]

    # @param level [String]
    # @param settings [Hash] `secret:` that its clients are to know, where it asks for one; `window:` of the senders
    # @return [Hash] options of the load
    def speech(level: levels.first, **settings)
      raise NotImplementedError
    end

    # Starts it, yields once it listens, and stops it.
    #
    # @param level [String]
    # @param folder [String, nil] of its data, which stays; nil: one of its own, removed afterwards
    # @param link [Link, nil] it runs at the end of this instead of on the loopback
    # @yieldparam server [Server]
    # @return what the block returns
    def run(level: levels.first, folder: nil, link: nil, **settings, &block)
      return in_folder { |own| run(level: level, folder: own, link: link, **settings, &block) } unless folder
      port = Server.free_port
      command, environment = command(port, folder, settings.merge(level: level, host: link ? link.host : HOST))
      Server.run(command, port: port, env: environment, within: link ? link.broker : [], limit: START_SECONDS, &block)
    end

    # @param server [Server] of {#run}
    # @param more [Hash] see {#speech}
    # @return [BrokerStage]
    def stage(server, link: nil, **more)
      options = speech(**more)
      options = options.merge(host: link.host, within: link.load) if link
      BrokerStage.new(server, options)
    end

    # @yieldparam folder [String] on the disk, removed afterwards
    def in_folder(&block)
      FileUtils.mkdir_p(DATA)
      Dir.mktmpdir(name, DATA, &block)
    end

    private

    def find(program)
      folders = [*ENV.fetch("PATH", "").split(":"), "/usr/sbin", "/usr/local/sbin"]
      folders.map { |folder| File.join(folder, program) }.find { |path| File.executable?(path) }
    end
  end
end
