# frozen_string_literal: true

require_relative "../link/shaped_link"
require_relative "client"

module Bench
  # Chromium: as it comes, over TLS with HTTP/2, or through Hikyaku's proxy, which runs beside it.
  class ChromiumClient < PipeliningClient
    PROXY = [RbConfig.ruby, File.expand_path("../../exe/hikyaku", __dir__), "proxy"].freeze
    PROXY_PORT = 8118
    HOMES = %w[HOME XDG_CACHE_HOME XDG_STATE_HOME XDG_DATA_HOME].freeze # where the proxy remembers origins

    # @param proxy [Symbol, nil] what the proxy knows: `:nothing`; `:origin`, from an earlier run; or it has the origin's connections `:open`
    def initialize(name, title, secure: false, proxy: nil)
      super(name, title, "chromium", secure: secure)
      @proxy = proxy
    end

    def versions = {"chromium" => `chromium --version 2>#{File::NULL}`[/Chromium ([\d.]+)/, 1]}.compact

    def browser? = true

    # The proxy does not go to the loopback.
    def run(**)
      return super unless @proxy
      ShapedLink.run { |link| Site.run("nginx", link: link, sheets: [TRIAL]) { |site| yield site } }
    end

    def visit(site, sheet)
      return logged(site) { report(site, sheet, {"fingerprint" => (site.fingerprint if secure)}.compact) } unless @proxy
      Dir.mktmpdir("bench-proxy") do |folder|
        with_proxy(site, folder) { |through| report(site, Sheet::FIRST, through) } if @proxy == :origin
        with_proxy(site, folder) do |through|
          report(site, Sheet::FIRST, through) if @proxy == :open
          logged(site) { report(site, sheet, through) }
        end
      end
    end

    private

    def with_proxy(site, folder)
      address = "#{LOOPBACK}:#{PROXY_PORT}"
      Server.run([*PROXY, "--listen", address], port: PROXY_PORT, env: HOMES.to_h { |name| [name, folder] }, within: site.within) do
        yield({"proxy" => address})
      end
    end
  end
end
