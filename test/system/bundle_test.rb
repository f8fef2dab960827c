# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/live_application"

# Pages whose scripts a bundler has put into one file, hikyaku.js with them, and that have a turbo_stream_from in their HTML: the element
# begins while the bundle is evaluated.
class BundleTest < Minitest::Test
  include LiveApplication

  ESBUILD = File.join(RailsServer::ROOT, "node_modules/.bin/esbuild")
  ALIASES = {
    "@hotwired/turbo-rails" => File.join(Gem::Specification.find_by_name("turbo-rails").gem_dir, "app/assets/javascripts/turbo.js"),
    "hikyaku" => File.join(RailsServer::ROOT, "app/assets/javascripts/hikyaku.js")
  }.freeze
  TURBO = %(import "@hotwired/turbo-rails";\n)
  NAMED = %(<meta name="hikyaku-worker" content="<%= asset_path "hikyaku.js" %>">)
  SOURCES = {
    "plain" => %(#{TURBO}import {Hikyaku} from "hikyaku";\nwindow.Hikyaku = Hikyaku;\n),
    "configured" => %(#{TURBO}import {Hikyaku} from "hikyaku";\nwindow.Hikyaku = Hikyaku;\nHikyaku.configure({worker: document.body.dataset.worker});\n)
  }.freeze
  # How bundles are made, and how pages load them.
  FORMS = {"esm" => "module", "iife" => "text/javascript"}.freeze

  class << self
    def server
      @server ||= begin
        folder = LiveApplication.folder(files)
        SOURCES.each { |name, source| FORMS.each_key { |form| bundle(source, form, File.join(folder.path, "public/#{name}-#{form}.js")) } }
        LiveApplication.start(folder).tap { |server| Minitest.after_run { server.stop.then { folder.remove } } }
      end
    end

    private

    def files
      {
        "app/controllers/bundles_controller.rb" => "class BundlesController < ApplicationController\n  layout false\n  def show = nil\nend\n",
        "app/views/bundles/show.html.erb" => <<~ERB,
          <!doctype html>
          <html><head><title>bundle</title><link rel="icon" href="data:,"><%= csrf_meta_tags %>
          <% if params[:named] %>#{NAMED}<% end %>
          <script defer type="<%= params[:type] %>" src="/<%= params[:bundle] %>.js"></script></head>
          <body data-worker="<%= asset_path "hikyaku.js" %>"><%= turbo_stream_from Conversation.first %></body></html>
        ERB
        "config/routes.rb" => File.read("#{LiveApplication::EXAMPLE}/config/routes.rb").sub("  hikyaku\n", "  hikyaku\n  resource :bundle, only: :show\n")
      }
    end

    def bundle(source, form, target)
      aliases = ALIASES.map { |name, path| "--alias:#{name}=#{path}" }
      output, status = Open3.capture2e(ESBUILD, "--bundle", "--format=#{form}", "--log-level=error", "--outfile=#{target}", *aliases, stdin_data: source, chdir: RailsServer::ROOT)
      raise "no bundle: #{output}" unless status.success?
    end
  end

  def setup
    super
    skip_unless_available("node", npm: "esbuild")
    @server = self.class.server
  end

  FORMS.each do |form, type|
    test "a bundle is not started as a worker: where the page names no file the tabs share by themselves, and say how to change that (#{form})" do
      page = open_bundle("plain-#{form}", type)
      second = open_bundle("plain-#{form}", type, beside: page)
      assert_equal %w[tabs tabs], [page, second].map { |each| each.js("Hikyaku.sharing") }
      assert_empty workers.grep(/plain/)
      [page, second].each { |each| each.until("nothing is said") { each.complaints.grep(/Add <meta name="hikyaku-worker"/).one? } }
    end

    test "the worker is started from the file that the page names (#{form})" do
      assert_works(open_bundle("plain-#{form}", type, named: 1))
    end

    test "the worker is started from the file that the bundle configures behind its imports (#{form})" do
      assert_works(open_bundle("configured-#{form}", type))
    end
  end

  private

  def url = "http://localhost:#{@server.port}"

  def open_bundle(bundle, type, beside: nil, **more)
    path = "/bundle?#{URI.encode_www_form(bundle: bundle, type: type, **more)}"
    return open_tab(one, beside, path) if beside
    open_page(one, path, who: "Ada")
  end

  def assert_works(page)
    assert_equal "worker", page.js("Hikyaku.sharing")
    page.until("no worker of the file's: #{workers}") { workers.any? }
    assert_empty workers.grep_v(%r{/assets/hikyaku-\h+\.js\z})
    assert_empty page.complaints
  end

  def workers = one.targets.filter_map { |target| target["url"] if target["type"] == "shared_worker" }
end
