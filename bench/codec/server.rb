# frozen_string_literal: true

require "json"
require "rbconfig"
require_relative "../harness/entrant"
require_relative "answers"
require_relative "front"

module Bench
  # The Rails application of this folder in Puma, and nginx before it in some of the ways: all on one core.
  class CodecServer < Entrant
    FOLDER = __dir__
    RACKUP = "config.ru"
    THREADS = 5
    GEMS = {"oj" => %w[oj], "msgpack" => %w[msgpack], "mpac" => %w[msgpack]}.freeze
    # How the paper's table calls what is compressed where, and what else there is.
    WAYS = {
      "none" => "not compressed", "application" => "by the application", "middleware" => "by Hikyaku's middleware", "cache" => "by Hikyaku's, with its cache",
      "nginx" => "by nginx", "behind" => "by Hikyaku's, behind nginx"
    }.freeze
    # What the application itself does in these, and whether nginx compresses.
    WITH_NGINX = {"nginx" => ["none", true], "behind" => ["middleware", false]}.freeze
    # As small as what nginx makes of it at its own level, which is 1, or smaller.
    LEVELS = {gzip: 1}.freeze
    NAMES = {"json" => "JSON (json)", "oj" => "JSON (oj)", "mpac" => "MessagePack (to_msgpack)", "msgpack" => "MessagePack"}.freeze
    # Beside them the paper's own way with MessagePack has what the paper has.
    PAPERS = {"mpac" => %w[none application nginx]}.freeze

    # @return [Array<Array(String, String)>] what goes together
    def self.pairs = NAMES.keys.flat_map { |format| PAPERS.fetch(format, WAYS.keys).map { |way| [format, way] } }

    # @param format [String] see {NAMES}
    # @param way [String] see {WAYS}
    def initialize(format, way)
      super("#{format}-#{way}", "#{NAMES.fetch(format)}, #{WAYS.fetch(way)}")
      @format = format
      @way = way
      @application, gzip = WITH_NGINX.fetch(way, [way, nil])
      @front = CodecFront.new(gzip: gzip) unless gzip.nil?
    end

    # @return [String]
    attr_reader :format, :way

    def suites = [Suite::CODEC]

    def prepare = @front&.prepare

    def versions
      gems = ["rails", *GEMS.fetch(format, []), *(%w[brotli zstd-ruby] if @application == "middleware")]
      its = gems.to_h { |name| [name, Gem.loaded_specs[name]&.version.to_s] }.merge("zlib" => Zlib.zlib_version)
      @front ? its.merge(@front.versions) : its
    end

    def command(port, folder, _settings)
      [[RbConfig.ruby, Gem.bin_path("puma", "puma"), "--bind", "tcp://#{LOOPBACK}:#{port}", "--threads", "#{THREADS}:#{THREADS}",
        "--environment", "production", "--quiet", File.join(FOLDER, self.class::RACKUP)],
        {"BENCH_FOLDER" => folder, **settings}]
    end

    # @yieldparam servers [Array<Server>] the one that is asked comes first
    def run(**settings)
      super do |puma|
        next yield [puma] unless @front
        @front.run(puma) { |nginx| yield [nginx, puma] }
      end
    end

    # @return [Answers]
    def stage(servers, **)
      Answers.new(format, servers, compresses: way != "none")
    end

    private

    def settings = {"BENCH_FORMAT" => format, "BENCH_WAY" => @application, "BENCH_SETTINGS" => JSON.generate(levels: LEVELS)}
  end

  # The same answers without Rails, serialised before anybody asks.
  class ReadyServer < CodecServer
    RACKUP = "ready.ru"
    ALONE = File.join(FOLDER, "alone.rb")
    WAYS = CodecServer::WAYS.slice("none", "application", "middleware", "cache").freeze

    # @see CodecServer#initialize
    def initialize(format, way)
      super
      @name = "#{format}-ready-#{way}"
      @title = "#{NAMES.fetch(format)}, kept ready, #{WAYS.fetch(way)}"
    end

    # Without a server: what is called is the application.
    #
    # @param payload [String] of {Payloads}
    # @param seconds [Float] that are measured
    # @return [Hash] figures
    def alone(payload, seconds:)
      figures = Load.report(["env", *settings.map { |pair| pair.join("=") }, Build.program("pin"), Server::CORE.to_s, RbConfig.ruby, ALONE, "/#{payload}",
        Answers::MEDIA_TYPES.fetch(format), seconds.to_s])
      figures.merge("whole" => figures["whole"] && figures["coding"] == ((way == "none") ? nil : "gzip"))
    end
  end
end
