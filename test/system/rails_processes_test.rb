# frozen_string_literal: true

require "test_helper"
require "support/availability"
require "support/browser"
require "support/http_client"
require "support/rails_server"
require "support/running_hub"

# A Rails application in several processes: one hub beside them, or a refusal; never a publish that reaches nobody.
class RailsProcessesTest < Minitest::Test
  PATH = "/.well-known/mercure"
  PUBLISH = %(puts Hikyaku.publish("/visitors", {visitors: 77}, type: "visitors"))
  # The door of the example would speak in between.
  QUIET = {"lib/shop.rb" => File.read(File.join(RailsServer::EXAMPLE, "lib/shop.rb")).sub("loop do", "loop do\n          sleep")}.freeze
  # A process of its own says who it is.
  WHO = {"app/controllers/who_controller.rb" => <<~RUBY, "config/initializers/who.rb" => <<~ROUTE}.freeze
    class WhoController < ApplicationController
      def show
        Hikyaku.publish("/who", Process.pid.to_s, type: "who")
        render plain: Process.pid
      end
    end
  RUBY
    Rails.application.config.after_initialize do
      Rails.application.routes.append { get "/who", to: "who#show" }
      Rails.application.reload_routes!
    end
  ROUTE
  KEYS = %w[--publisher-key the-secret-of-publishers-32-bytes-long --subscriber-key the-secret-of-subscribers-32-bytes-or-so].freeze
  INITIALIZER = <<~RUBY
    Rails.application.configure do
      config.hikyaku.hub = ENV["HIKYAKU_HUB"]
      config.hikyaku.anonymous = true
      config.hikyaku.publisher_key = "#{KEYS[1]}"
      config.hikyaku.subscriber_key = "#{KEYS[3]}"
      config.hikyaku.resource_identifier = ENV["PUBLIC_URL"].presence
    end
  RUBY

  def setup
    @folder = RailsServer::Folder.new({**QUIET, **WHO, "config/initializers/hikyaku.rb" => INITIALIZER})
    @running = []
  end

  def teardown
    @running.reverse_each(&:stop)
    @browser&.quit
    @folder.remove
  end

  test "every Puma worker and the runner reach one browser, through a hub beside them" do
    skip_unless_available("chromium")
    port = RailsServer.free_port
    hub = start RunningHub.new(*KEYS, "--cookie-name", "mercure_access_token", "--cors-origin", "http://127.0.0.1:#{port}")
    shop = start RailsServer.new(@folder, *RailsServer::PUMA, "-w", "2", port: port, HIKYAKU_HUB: hub.url)
    @browser = TestBrowser.new
    page = @browser.page
    page.visit("http://127.0.0.1:#{port}/")
    page.until("it is not live") { page.text("#connection") == "live" }
    page.js("(() => { window.who = new Set(); source = new EventSource('#{hub.url}?match=/who', {withCredentials: true}); " \
      "source.onopen = () => window.ready = true; source.addEventListener('who', (event) => window.who.add(event.data)) })()")
    page.until("no second stream") { page.js("window.ready") }

    workers = page.until("only one worker answered") do
      (@workers ||= []) << shop.get("/who").body
      @workers.uniq if @workers.uniq.size == 2
    end
    page.until("a worker did not reach the page") { page.js("[...window.who]").sort == workers.sort }

    output, status = @folder.run("bin/rails", "runner", PUBLISH, HIKYAKU_HUB: hub.url)
    assert status.success?, output
    page.until("the runner did not reach the page") { page.text("#visitors") == "77" }

    # The cookie that the application gives is understood by the hub beside it, and Hikyaku.disconnect works from here.
    page.click("#enter")
    page.until("no till") { page.text("#connection") == "live" && page.text("#takings") == "0" }
    page.click("#book-1 button.sell")
    page.until("the till stayed") { page.text("#takings") == "14" }
    page.click("#leave")
    page.until("still there") { page.text("#connection") == "live" && page.text("#takings") == "for staff only" }
  end

  test "a subscriber who asks the application is sent to the hub, or told why not" do
    socket = File.join(@folder.path, "hub.sock")
    shop = start RailsServer.new(@folder, HIKYAKU_HUB: "unix:#{socket}", PUBLIC_URL: "https://hub.example.com/live")
    response = shop.get("#{PATH}?match=/visitors")
    assert_equal ["307", "https://hub.example.com/live?match=/visitors"], [response.code, response["location"]]
    response = shop.get("/.well-known/oauth-protected-resource/live")
    assert_equal "https://hub.example.com/.well-known/oauth-protected-resource/live", response["location"]
    assert_match(%r{<https://hub\.example\.com/live>; rel="mercure"}, shop.get("/")["link"])
  end

  test "a hub on a Unix socket with the application's own settings: bin/rails hikyaku:hub" do
    socket = File.join(@folder.path, "hub.sock")
    env = {HIKYAKU_HUB: "unix:#{socket}", RAILS_ENV: "production", PUBLIC_URL: "http://shop.example.com#{PATH}"}
    output, status = @folder.run("bin/rails", "runner", PUBLISH, **env)
    refute status.success?
    assert_match(/hub\.sock.* cannot be reached/, output)
    start Hub.new(@folder, socket, env)
    stream = HttpClient.new(unix: socket).stream("GET", "#{PATH}?match=/visitors")
    output, status = @folder.run("bin/rails", "runner", PUBLISH, **env)
    assert status.success?, output
    assert_equal %({"visitors":77}), stream.next.data
    response = HttpClient.new(unix: socket).request("GET", "#{PATH}?match=/visitors", headers: {"authorization" => "Bearer x"})
    assert_equal 401, response.status
  ensure
    stream&.close if stream.respond_to?(:close)
  end

  test "a server with several processes and no hub refuses to start, and says what to do" do
    port = RailsServer.free_port
    {
      "preloaded" => RailsServer::PUMA + ["-w", "2", "--bind", "tcp://127.0.0.1:#{port}"],
      "not preloaded" => RailsServer::PUMA + ["-w", "1", "--bind", "tcp://127.0.0.1:#{port}"],
      "rails server" => ["env", "WEB_CONCURRENCY=2", "bin/rails", "server", "-p", port.to_s, "-b", "127.0.0.1"]
    }.each do |name, command|
      output, status = @folder.run("timeout", "180", *command, PORT: port.to_s)
      refute status.success?, name
      refute_equal 124, status.exitstatus, "#{name} went on"
      assert_match(/the server has several processes, and a hub lives in one: .*config\.hikyaku\.hub/, output, name)
    end
  end

  test "in production a job, the console or the runner without a hub raises, and says what to do" do
    output, status = @folder.run("bin/rails", "runner", PUBLISH, RAILS_ENV: "production")
    refute status.success?
    assert_match(/no hub is known here, .*config\.hikyaku\.hub.*\(Hikyaku::NoHub\)/, output)
  end

  test "a setting that does not exist stops the boot, by name" do
    File.write(File.join(@folder.path, "config/initializers/more.rb"), "Rails.application.config.hikyaku.histroy = 1\n")
    output, status = @folder.run("bin/rails", "runner", "1")
    refute status.success?
    assert_match(/config\.hikyaku: unknown setting histroy; did you mean history\?/, output)
  end

  test "subscribers hold no thread of the server: 50 of them on 2 threads, and pages are served" do
    shop = start RailsServer.new(@folder, *RailsServer::PUMA, "-t", "2:2")
    client = HttpClient.new(shop.port)
    streams = Array.new(50) { client.stream("GET", "#{PATH}?match=/who", headers: {"host" => "localhost"}) }
    pid = shop.get("/who").body
    assert_equal [pid] * 50, streams.map { |stream| stream.next.data }
    assert_equal "200", shop.get("/").code
    # Puma admits QUERY where config/puma.rb says so.
    query = client.stream("QUERY", PATH, headers: {"host" => "localhost", "content-type" => "application/x-www-form-urlencoded"}, body: "match=/who")
    shop.get("/who")
    assert_equal pid, query.next.data
    shop.stop
    assert_operator streams.first.tap(&:rest).retry_after, :>, 0
  ensure
    [*streams, query].compact.each(&:close)
  end

  test "code that is reloaded leaves the subscribers where they are" do
    shop = start RailsServer.new(@folder)
    stream = HttpClient.new(shop.port).stream("GET", "#{PATH}?match=/who", headers: {"host" => "localhost"})
    shop.get("/who")
    assert_match(/\A\d+\z/, stream.next.data)
    path = File.join(@folder.path, "app/controllers/who_controller.rb")
    File.write(path, File.read(path).sub("Process.pid.to_s", '"reloaded"'))
    FileUtils.touch(File.join(@folder.path, "config/routes.rb"))
    shop.get("/who")
    assert_equal "reloaded", stream.next.data
  ensure
    stream&.close
  end

  # `bin/rails hikyaku:hub`
  class Hub
    def initialize(folder, socket, env)
      @pid = Process.spawn(folder.env(env), "bin/rails", "hikyaku:hub", chdir: folder.path, out: File::NULL, err: File::NULL)
      deadline = HttpClient.now + 40
      until File.exist?(socket)
        raise "the hub did not start" if HttpClient.now > deadline
        sleep 0.05
      end
    end

    def stop
      Process.kill(:TERM, @pid)
      Process.wait(@pid)
    end
  end
  private_constant :Hub

  private

  def start(server) = server.tap { @running << server }
end
