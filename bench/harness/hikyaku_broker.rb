# frozen_string_literal: true

require "securerandom"
require_relative "broker"

module Bench
  # `hikyaku broker`, by engine: ordinary settings. At level memory it has no storage.
  class HikyakuBroker < Broker
    SECRET = SecureRandom.hex(16)

    # @param engine [String] "c" or "ruby"
    # @param yjit [Boolean] as Ruby 3.3 and later have it by themselves, and earlier ones when they are told
    def initialize(engine, yjit: false)
      super("broker-#{engine}#{"-yjit" if yjit}", "Hikyaku broker, #{engine.capitalize} engine#{", YJIT" if yjit}")
      @engine = engine
      @yjit = yjit
    end

    def prepare
      raise Unavailable, "this Ruby has no YJIT" if @yjit && !defined?(RubyVM::YJIT)
    end

    def command(port, folder, settings)
      flags = ["--engine=#{@engine}", "--socket=none", "--listen=#{settings[:host]}:#{port}", "--log-level=warn"]
      flags << "--storage=#{folder}" unless settings[:level] == "memory"
      flags << "--secret-file=#{secret_in(folder)}" if settings[:secret]
      [[RbConfig.ruby, *("--yjit" if @yjit), File.join(ROOT, "exe/hikyaku"), "broker", *flags], {}]
    end

    def speech(level: levels.first, secret: nil, **) = {dialect: "hikyaku", level: level, secret: secret}.compact

    private

    def secret_in(folder)
      File.join(folder, "secret").tap { |path| File.write(path, SECRET, perm: 0o600) }
    end
  end
end
