# frozen_string_literal: true

require "rbconfig"
require "tmpdir"
require_relative "../harness/entrant"
require_relative "../harness/load"
require_relative "gems"
require_relative "site"

module Bench
  # A client that visits pages: a program of clients/ and its settings.
  class PipeliningClient < Entrant
    CLIENTS = File.join(__dir__, "clients")
    # A proxy of the shell that runs the benchmark is no part of it.
    PROXIES = %w[http_proxy https_proxy all_proxy no_proxy].flat_map { |name| [name, name.upcase] }.freeze
    TRIAL = Sheet.new(256, 20)

    # What {Command} wakes an entrant with.
    Trial = Struct.new(:client, :site) do
      # @return [Hash]
      def wake = client.visit(site, TRIAL)
    end

    # @return [Boolean] whether it takes the pages over TLS, with HTTP/2
    attr_reader :secure
    alias_method :secure?, :secure

    # @param program [String] of clients/
    # @param settings [Hash{String => String}] of it
    # @param secure [Boolean]
    # @param knows [Boolean] whether it has been at the origin before, and remembers
    # @param gems [Array<String>] of bench/pipelining/Gemfile, that it needs
    # @param rates [Boolean] whether its requests a second can be measured
    def initialize(name, title, program, settings: {}, secure: false, knows: false, gems: [], rates: false)
      super(name, title)
      @program = File.join(CLIENTS, "#{program}.rb")
      @settings = settings
      @secure = secure
      @knows = knows
      @gems = gems
      @library = program.tr("_", "-") if rates
    end

    def suites = [Suite::PIPELINING]

    def prepare = @gems.any? ? PIPELINING_GEMS.prepare : nil

    def versions = @gems.any? ? PIPELINING_GEMS.versions(*@gems) : {}

    # @return [Boolean] whether it is a browser
    def browser? = false

    # On the loopback, to see whether it can take part.
    def run(**) = Site.run("nginx", sheets: [TRIAL]) { |site| yield site }

    def stage(site, **) = Trial.new(self, site)

    # @param site [Site]
    # @param sheet [Sheet]
    # @return [Hash] "seconds" and other figures, with "whole"
    # @raise [Load::Failed]
    def visit(site, sheet)
      Dir.mktmpdir("bench-visit") do |folder|
        settings = @settings
        if @knows
          settings = settings.merge("memory" => File.join(folder, "memory"))
          report(site, Sheet::FIRST, settings.merge("start" => "page"))
        end
        logged(site) { report(site, sheet, settings) }
      end
    end

    # On the loopback, on a core of its own.
    #
    # @param site [Site]
    # @param sheet [Sheet]
    # @param style [String] "each" or "batch"
    # @param requests [Integer]
    # @return [Hash] "per_second", "cpu_us_each"
    # @raise [Load::Failed]
    def rate(site, sheet, style, requests)
      words = {"library" => @library, "style" => style, "requests" => requests}.map { |name, value| "#{name}=#{value}" }
      Load.report([*environment, Build.program("pin"), Load::CORE.to_s, RbConfig.ruby, File.join(CLIENTS, "rate.rb"), *words, site.url(sheet)])
    end

    private

    # With what the server says of the visit: how many connections it took, say.
    def logged(site)
      mark = site.log.mark
      figures = yield
      site.log.since(mark).merge(figures) { |name, by_server, by_client| (name == "connections") ? by_server : by_client }
    end

    def report(site, sheet, settings)
      words = settings.map { |name, value| "#{name}=#{value}" }
      Load.report([*site.within, *environment, RbConfig.ruby, @program, *words, site.url(sheet, secure: secure)])
    end

    def environment = ["env", *PROXIES.flat_map { |name| ["-u", name] }, *(PIPELINING_GEMS.words if @gems.any?)]
  end
end
