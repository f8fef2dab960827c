# frozen_string_literal: true

require_relative "../link/link"
require_relative "../pipelining/site"

module Bench
  # A client that visits pages: a program of bench/pipelining/clients with settings.
  class PageClient < Entrant
    CLIENTS = File.expand_path("../pipelining/clients", __dir__)
    GEMS = GemSet.new("pipelining")
    # Proxies of the shell are no part of the benchmark.
    PROXIES = %w[http_proxy https_proxy all_proxy no_proxy].flat_map { |name| ["-u", name, "-u", name.upcase] }.freeze
    TRIAL = Sheet.new(256, 20)

    # With which a client shows that it can take part.
    Trial = Struct.new(:client, :site) do
      def wake = client.visit(site, TRIAL)
    end

    # Whether it fetches the pages over TLS, with HTTP/2.
    attr_reader :secure

    # @param knows [Boolean] whether it has visited the origin before, and remembers
    # @param gems [String, nil] of bench/pipelining/Gemfile
    def initialize(name, title, program, settings = {}, secure: false, knows: false, gems: nil)
      super(name, title, suites: ["pipelining"], needs: [*(GEMS.with(gems) if gems)])
      @program = File.join(CLIENTS, "#{program}.rb")
      @settings = settings
      @secure = secure
      @knows = knows
      unset, set = gems ? GEMS.environment.partition { |_, value| value.nil? } : [[], []]
      @environment = ["env", *PROXIES, *unset.flat_map { |variable, _| ["-u", variable] }, *set.map { |variable, value| "#{variable}=#{value}" }]
    end

    def browser? = false

    # On the loopback.
    def run(**) = Site.run("nginx", sheets: [TRIAL]) { |site| yield site }

    def stage(site, **) = Trial.new(self, site)

    # @return [Hash] "seconds" and other figures
    # @raise [Load::Failed]
    def visit(site, sheet)
      in_folder do |folder|
        settings = @knows ? @settings.merge("memory" => File.join(folder, "memory")) : @settings
        report(site, Sheet::FIRST, settings.except("start")) if @knows
        site.logged { report(site, sheet, settings) }
      end
    end

    # Requests a second on the loopback, on a core of its own.
    #
    # @param style [String] "each" or "batch"
    # @return [Hash] "per_second", "cpu_us_each"
    def rate(site, sheet, style, requests)
      words = {**@settings, "style" => style, "requests" => requests}.map { |pair| pair.join("=") }
      Load.report([*@environment, *Server.pinned(Load::CORE, RbConfig.ruby, File.join(CLIENTS, "rate.rb"), *words, site.url(sheet))])
    end

    private

    def report(site, sheet, settings)
      Load.report([*site.within, *@environment, RbConfig.ruby, @program, *settings.map { |pair| pair.join("=") }, site.url(sheet, secure: secure)])
    end
  end

  # Chromium as it comes, over TLS with HTTP/2, or through Hikyaku's proxy, which runs beside it.
  class ChromiumClient < PageClient
    PROXY = "#{LOOPBACK}:8118".freeze
    HOMES = %w[HOME XDG_CACHE_HOME XDG_STATE_HOME XDG_DATA_HOME].freeze # where the proxy remembers origins

    # @param proxy [Symbol, nil] what the proxy knows: `:nothing`; `:origin`, from an earlier run; or it has connections `:open`
    def initialize(name, title, secure: false, proxy: nil)
      super(name, title, "chromium", secure: secure)
      @proxy = proxy
    end

    def versions = {"chromium" => `chromium --version 2>#{File::NULL}`[/Chromium ([\d.]+)/, 1]}.compact

    def browser? = true

    # The proxy refuses the loopback.
    def run(**)
      return super unless @proxy
      ShapedLink.run { |link| Site.run("nginx", link: link, sheets: [TRIAL]) { |site| yield site } }
    end

    def visit(site, sheet)
      return site.logged { report(site, sheet, {"fingerprint" => (site.fingerprint if secure)}.compact) } unless @proxy
      in_folder do |folder|
        with_proxy(site, folder) { |through| report(site, Sheet::FIRST, through) } if @proxy == :origin
        with_proxy(site, folder) do |through|
          report(site, Sheet::FIRST, through) if @proxy == :open
          site.logged { report(site, sheet, through) }
        end
      end
    end

    private

    def with_proxy(site, folder)
      Server.run([RbConfig.ruby, File.join(ROOT, "exe/hikyaku"), "proxy", "--listen", PROXY], port: PROXY[/\d+\z/].to_i, env: HOMES.to_h { |name| [name, folder] },
        within: site.within) { yield({"proxy" => PROXY}) }
    end
  end

  library = ->(name, title, which, settings = {}, **more) { Entrants.add PageClient.new(name, title, "library", {"library" => which, **settings}, **more) }
  library.call("net-http", "Net::HTTP, 1 connection", "net-http")
  library.call("net-http-2", "Net::HTTP, 2 connections", "net-http", {"connections" => "2"})
  library.call("httpx", "httpx", "httpx", gems: "httpx")
  library.call("excon", "Excon, a pipeline", "excon", gems: "excon")
  library.call("hikyaku", "Hikyaku", "hikyaku", knows: true)
  library.call("hikyaku-list", "Hikyaku (F)", "hikyaku", {"start" => "list"}, knows: true)
  library.call("hikyaku-open", "Hikyaku, connections open", "hikyaku", {"start" => "open"}, knows: true)
  library.call("hikyaku-new", "Hikyaku, origin not known", "hikyaku")
  {"serial" => ["one by one", "1"], "all" => ["all at once", "0"], "16" => ["16 unanswered", "16"]}.each do |way, (words, unanswered)|
    %w[450 60].each { |head| library.call("heads-#{head}-#{way}", "bare, heads of #{head} B, #{words}", "raw", {"head" => head, "unanswered" => unanswered}) }
  end
  Entrants.add PageClient.new("curl-6", "curl, 6 connections (F)", "curl")
  Entrants.add PageClient.new("curl-h2", "curl, HTTP/2 over TLS (F)", "curl", {"http2" => "yes"}, secure: true)
  {
    "chromium" => ["Chromium", {}], "chromium-h2" => ["Chromium, HTTP/2 over TLS", {secure: true}],
    "chromium-proxy" => ["Chromium through the proxy", {proxy: :origin}],
    "chromium-proxy-open" => ["Chromium through the proxy, connections open", {proxy: :open}],
    "chromium-proxy-new" => ["Chromium through the proxy, origin not known", {proxy: :nothing}]
  }.each { |name, (title, more)| Entrants.add ChromiumClient.new(name, title, **more) }
end
