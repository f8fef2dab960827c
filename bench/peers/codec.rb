# frozen_string_literal: true

require "json"
require "net/http"
require "zlib"
require_relative "../codec/payloads"
require_relative "../harness/entrant"
require_relative "../harness/front"

module Bench
  # The application of bench/codec while it runs, with nginx before it or not, and the load that is put on it.
  class Answers
    IDENTITY = "identity"
    MEDIA_TYPES = {
      "json" => "application/json", "oj" => "application/json", "msgpack" => "application/vnd.msgpack", "mpac" => "application/x-mpac"
    }.freeze
    TRIAL = "paper"
    GENERATOR = {subscribers: 0, method: "GET", same: true, settle: 0}.freeze

    # @param format [String] of {MEDIA_TYPES}
    # @param servers [Array<Server>] the first gets the requests
    def initialize(format, servers, compresses:)
      @format = format
      @servers = servers
      @compresses = compresses
    end

    # "whole": whether it answers what it should.
    def wake = wrong(TRIAL, coding).then { |reason| {"whole" => reason.nil?, "wrong" => reason} }

    def coding = @compresses ? "gzip" : IDENTITY

    # One response is decoded and checked; all others must have the same bytes.
    #
    # @return [Hash] figures
    # @raise [Load::Failed] the response is not the expected one
    def load(payload, coding: self.coding, clients: 100, seconds: 3, warmup: 1)
      reason = wrong(payload, coding)
      raise Load::Failed, reason if reason
      figures = Load.run(port: @servers.first.port, publish_path: "/#{payload}", publish_header: fields(coding).map { |pair| pair.join(": ") },
        coding: (coding unless coding == IDENTITY), publishers: clients, seconds: seconds, warmup_seconds: warmup, pid: @servers.flat_map(&:pids), **GENERATOR)
      its = figures.fetch("publish")
      latency = its["answer_ms"]
      {"clients" => clients, "responses" => its["accepted"], "p90" => latency["p90"], "latency_ms" => latency, "whole" => figures["whole"],
       "kb_per_second" => its["bytes_each"] * its["per_second"] / 1024,
       **its.slice(*%w[refused wrong connects seconds per_second body_bytes bytes_each cpu_us_each server_busy load_busy])}
    end

    private

    def fields(coding) = {"Accept" => MEDIA_TYPES.fetch(@format), "Accept-Encoding" => coding}

    # @return [String, nil] what is not as it should be
    def wrong(payload, coding)
      answer = Net::HTTP.start(Entrant::LOOPBACK, @servers.first.port) { |http| http.get("/#{payload}", fields(coding)) }
      actual = answer["content-encoding"] || IDENTITY
      return "the status is #{answer.code}" unless answer.code == "200"
      return "the coding is #{actual}, not #{coding}" unless actual == coding
      return "the type is #{answer["content-type"]}" unless answer["content-type"].to_s.start_with?(MEDIA_TYPES.fetch(@format))
      "the body is not the object" unless object(answer.body, coding) == JSON.parse(JSON.generate(Payloads.fetch(payload)))
    end

    # Decoded by other libraries.
    def object(body, coding)
      case coding
      when "gzip" then body = Zlib.gunzip(body)
      when "br" then require("brotli").then { body = Brotli.inflate(body) }
      when "zstd" then require("zstd-ruby").then { body = Zstd.decompress(body) }
      end
      return JSON.parse(body) if MEDIA_TYPES.fetch(@format) == MEDIA_TYPES["json"]
      require "msgpack"
      MessagePack.unpack(body)
    end
  end

  # The Rails application of bench/codec in Puma, and in some ways nginx before it, all on one core.
  class CodecServer < Entrant
    FOLDER = File.expand_path("../codec", __dir__)
    GEMS = {"oj" => %w[oj], "msgpack" => %w[msgpack], "mpac" => %w[msgpack]}.freeze
    WAYS = {
      "none" => "not compressed", "application" => "by the application", "middleware" => "by Hikyaku's middleware", "cache" => "by Hikyaku's, with its cache",
      "nginx" => "by nginx", "behind" => "by Hikyaku's, behind nginx"
    }.freeze
    # What the application does in these, and whether nginx compresses.
    WITH_NGINX = {"nginx" => ["none", "on"], "behind" => ["middleware", "off"]}.freeze
    # The middleware's level makes bodies as small as nginx's at its default level, which is 1.
    SETTINGS = JSON.generate(levels: {gzip: 1})
    NAMES = {"json" => "JSON (json)", "oj" => "JSON (oj)", "mpac" => "MessagePack (to_msgpack)", "msgpack" => "MessagePack"}.freeze
    # The paper's own format is measured in the paper's ways.
    PAIRS = NAMES.keys.flat_map { |format| ((format == "mpac") ? %w[none application nginx] : WAYS.keys).map { |way| [format, way] } }.freeze

    attr_reader :format, :way

    def initialize(format, way, ready: false)
      super("#{format}-#{"ready-" if ready}#{way}", "#{NAMES.fetch(format)}, #{"kept ready, " if ready}#{WAYS.fetch(way)}", suites: ["codec"])
      @format = format
      @way = way
      @rackup = ready ? "ready.ru" : "config.ru"
      @application, @gzip = WITH_NGINX.fetch(way, [way, nil])
      @front = Front.new("codec.conf") if @gzip
    end

    def prepare = @front&.prepare

    def versions
      gems = ["rails", *GEMS[format], *(%w[brotli zstd-ruby] if @application == "middleware")]
      gems.to_h { |name| [name, Gem.loaded_specs[name]&.version.to_s] }.merge("zlib" => Zlib.zlib_version, **(@front ? @front.versions : {}))
    end

    def command(port, folder, settings)
      [Entrant.puma(File.join(FOLDER, @rackup), settings[:host], port), {"BENCH_FOLDER" => folder, **environment}]
    end

    # @yieldparam servers [Array<Server>] the first gets the requests
    def run(**)
      super do |puma|
        next yield [puma] unless @front
        @front.run({"address" => LOOPBACK, "server" => "#{LOOPBACK}:#{puma.port}", "gzip" => @gzip}) { |nginx| yield [nginx, puma] }
      end
    end

    def stage(servers, **) = Answers.new(format, servers, compresses: way != "none")

    # Without a server: calls the application of ready.ru from one thread.
    def alone(payload, seconds:)
      figures = Load.report(["env", *environment.map { |pair| pair.join("=") }, *Server.pinned(Server::CORE, RbConfig.ruby, File.join(FOLDER, "alone.rb"), "/#{payload}",
        Answers::MEDIA_TYPES.fetch(format), seconds.to_s)])
      figures.merge("whole" => figures["whole"] && figures["coding"] == ((way == "none") ? nil : "gzip"))
    end

    private

    def environment = {"BENCH_FORMAT" => format, "BENCH_WAY" => @application, "BENCH_SETTINGS" => SETTINGS}
  end

  READY_WAYS = %w[none application middleware cache].freeze
  CodecServer::PAIRS.each { |format, way| Entrants.add CodecServer.new(format, way) }
  %w[json msgpack].product(READY_WAYS) { |format, way| Entrants.add CodecServer.new(format, way, ready: true) }
end
