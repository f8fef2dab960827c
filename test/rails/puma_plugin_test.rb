# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rails_server"
require "support/without_native"

# A Rails application on Puma with `plugin :hikyaku`.
class RailsPumaPluginTest < Minitest::Test
  PATH = "/.well-known/mercure"
  PUMA = <<~RUBY
    threads 1, 3
    port ENV.fetch("PORT")
    workers ENV.fetch("WEB_CONCURRENCY", 0)
    worker_check_interval 1 if ENV["WEB_CONCURRENCY"]
    preload_app! ENV["PRELOAD"] == "yes"
    plugin :hikyaku
  RUBY
  FILES = {
    "config/puma.rb" => PUMA,
    # The door of the example would speak in between.
    "lib/shop.rb" => File.read(File.join(RailsServer::EXAMPLE, "lib/shop.rb")).sub("loop do", "loop do\n          sleep"),
    "app/controllers/who_controller.rb" => <<~RUBY,
      class WhoController < ApplicationController
        def show
          Hikyaku.publish("/who", Process.pid.to_s)
          render plain: Process.pid
        end
      end
    RUBY
    "config/initializers/who.rb" => <<~RUBY,
      Rails.application.config.after_initialize do
        Rails.application.routes.append { get "/who", to: "who#show" }
        Rails.application.reload_routes!
      end
    RUBY
    "config/initializers/hikyaku.rb" => <<~RUBY
      Rails.application.configure do
        config.hikyaku.anonymous = true
        config.hikyaku.hub = ENV["HIKYAKU_HUB"]
        config.hikyaku.subscriptions = true
      end
    RUBY
  }.freeze

  # A client signs in without a form.
  OPEN = {"config/initializers/open.rb" => "Rails.application.config.action_controller.allow_forgery_protection = false\n"}.freeze

  def teardown
    @streams&.each(&:close)
    @shop&.stop
    @folder&.remove
  end

  def serve(files = {}, command: RailsServer::PUMA, **env)
    @folder = RailsServer::Folder.new({**FILES, **files})
    # A hot restart begins with the environment that Bundler found: not with that of this process's.
    bundler = ENV.keys.grep(/\ABUNDLER_ORIG/).to_h { |name| [name.to_sym, nil] }
    @shop = RailsServer.new(@folder, *command, TMPDIR: @folder.path, **bundler, **env)
  end

  def follow(query = "match=/who", method: "GET", headers: {}, **options)
    HttpClient.new(@shop.port).stream(method, query ? "#{PATH}?#{query}" : PATH, headers: {"host" => "localhost", **headers}, **options).tap { |stream| (@streams ||= []) << stream }
  end

  def about = JSON.parse(File.read("#{@folder.path}/tmp/hikyaku/hub.json"))

  def hub = about["pid"]

  def await(what)
    deadline = HttpClient.now + 40
    until (value = yield)
      flunk "waited too long for #{what}: #{@shop.log}" if HttpClient.now > deadline
      sleep 0.05
    end
    value
  end

  # Publishes until each of two workers has.
  def both_workers
    await("both workers") { (@workers ||= []).push(@shop.get("/who").body).uniq.size == 2 }
    @workers.uniq
  end

  test "all workers publish to the hub beside them, and the route leads there; a phased restart changes nothing of it" do
    serve(WEB_CONCURRENCY: "2")
    process = hub
    streams = [follow, follow(nil, method: "QUERY", headers: {"content-type" => "application/x-www-form-urlencoded"}, body: "match=/who")]
    workers = both_workers
    streams.each { |stream| assert_equal workers.sort, stream.take(@workers.size).map(&:data).uniq.sort }
    assert_equal "hikyaku serve", File.read("/proc/#{process}/cmdline").split("\0").values_at(1, 2).map { |word| File.basename(word) }.join(" ")

    Process.kill(:USR1, @shop.pid)
    await("the restart") { @shop.log.scan("booted").size >= 4 }
    @workers.clear
    refute_equal workers.sort, both_workers.sort
    streams.each { |stream| assert_equal @workers.uniq.sort, stream.take(@workers.size).map(&:data).uniq.sort }
    assert_equal process, hub
    %W[#{PATH}?match=x #{PATH}/subscriptions /.well-known/oauth-protected-resource#{PATH}].zip(%w[HEAD GET GET], [200, 401, 200]).each do |path, method, status|
      assert_equal status, HttpClient.new(@shop.port).request(method, path, headers: {"host" => "localhost"}).status, path
    end
  end

  test "tokens of the application open the hub beside it; helpers, the runner and Hikyaku.disconnect find it" do
    serve(OPEN, WEB_CONCURRENCY: "2", PRELOAD: "yes")
    cookie = HttpClient.new(@shop.port).request("POST", "/session", headers: {"host" => "localhost"}).headers.filter_map { |name, value| value[/\A[^;]+/] if name == "set-cookie" }.join("; ")
    assert_match(/mercure_access_token=/, cookie)
    stream = follow("match=/takings", headers: {"cookie" => cookie})
    [{}, {HIKYAKU_SIDECAR: "#{@folder.path}/tmp/hikyaku"}].each do |env|
      output, status = @folder.run("bin/rails", "runner", 'print Hikyaku.publish("/takings", "private", private: true)', **env)
      assert status.success?, output
      assert_equal "private", stream.next.data
    end
    HttpClient.new(@shop.port).request("DELETE", "/session", headers: {"host" => "localhost", "cookie" => cookie})
    assert_empty stream.rest
  end

  test "`rails server`, which loads the application before it knows of the plugin, has the hub beside it too, with its storage" do
    storage = {"config/initializers/storage.rb" => "Rails.application.config.hikyaku.storage = Rails.root.join('tmp/hikyaku_storage').to_s\n"}
    [{}, {WEB_CONCURRENCY: "2", PRELOAD: "yes"}].each do |env|
      serve(storage, command: ["sh", "-c", "exec bin/rails server -b 127.0.0.1"], **env)
      stream = follow
      assert_equal @shop.get("/who").body, stream.next.data
      assert_match(/the hub http\S+ is process #{hub}/, @shop.log)
      assert_equal 1, @shop.log.scan("INFO  listening on unix").size
      refute_match(/another server|puma: /, @shop.log)
      @shop.stop
      @folder.remove
    end
  end

  test "after a hot restart the hub is the same, and another one when the application's settings have changed" do
    serve(PRELOAD: "yes", WEB_CONCURRENCY: "2")
    process = hub
    stream = follow
    restart = -> do
      booted = @shop.log.scan("booted").size
      Process.kill(:USR2, @shop.pid)
      await("the new Puma") { @shop.log.scan("booted").size >= booted + 2 }
    end
    restart.call
    assert_includes both_workers, stream.next.data
    assert_equal process, hub
    path = File.join(@folder.path, "config/initializers/hikyaku.rb")
    File.write(path, File.read(path).sub("subscriptions = true", "heartbeat = 2"))
    restart.call
    await("another hub") { hub != process }
    assert_match(/settings have changed/, @shop.log)
    stream.rest
    stream = follow
    @shop.get("/who")
    assert_match(/\A\d+\z/, stream.next.data)
  end

  test "in production the hub has a folder that no other process finds by itself" do
    serve(RAILS_ENV: "production")
    refute_path_exists "#{@folder.path}/tmp/hikyaku"
    assert_equal 1, Dir["#{@folder.path}/hikyaku-*/hub.json"].size
  end

  test "of two servers of one application each has a hub, and a console finds the first" do
    serve
    stream = follow
    other = RailsServer.new(@folder, TMPDIR: @folder.path)
    assert_match(/Hikyaku: another server of this application has .*tmp\/hikyaku/, other.log)
    assert_equal 1, Dir["#{@folder.path}/hikyaku-*/hub.json"].size
    other.get("/who")
    output, status = @folder.run("bin/rails", "runner", 'Hikyaku.publish("/who", "from the runner")')
    assert status.success?, output
    assert_equal "from the runner", stream.next.data
  ensure
    other&.stop
  end

  test "the hub, its workers and the cookie of a page go by the port of `rails server`" do
    serve({**OPEN, "config/puma.rb" => PUMA.sub(/^port .*/, "")}, command: ["sh", "-c", "exec bin/rails server -p #{port = RailsServer.free_port} -b 127.0.0.1"], port: port, PORT: nil)
    url = "http://localhost:#{port}#{PATH}"
    assert_equal url, about["resource_identifier"]
    assert_equal url, JSON.parse(HttpClient.new(port).request("GET", "/.well-known/oauth-protected-resource#{PATH}", headers: {"host" => "localhost"}).body).fetch("resource")
    cookie = HttpClient.new(port).request("POST", "/session", headers: {"host" => "localhost"}).headers.filter_map { |name, value| value[/\A[^;]+/] if name == "set-cookie" }.join("; ")
    stream = follow("match=/takings", headers: {"cookie" => cookie})
    @folder.run("bin/rails", "runner", 'Hikyaku.publish("/takings", "private", private: true)')
    assert_equal "private", stream.next.data
  end

  test "without the engine in C development has the one in Ruby, for more streams than there are threads; production is told the setting" do
    serve(RUBYOPT: WithoutNative::OPTION, WEB_CONCURRENCY: "2")
    assert_equal 1, @shop.log.scan("the engine in Ruby serves, which is slower").size, @shop.log
    streams = Array.new(8) { follow }
    output, status = @folder.run("bin/rails", "runner", 'Hikyaku.publish("/who", "from the runner")', RUBYOPT: WithoutNative::OPTION)
    assert status.success?, output
    streams.each { |stream| assert_equal "from the runner", stream.next.data }
    output, status = @folder.run("timeout", "180", *RailsServer::PUMA, PORT: RailsServer.free_port.to_s, RAILS_ENV: "production", RUBYOPT: WithoutNative::OPTION)
    assert_equal 1, status.exitstatus, output
    assert_match(/ERROR: Hikyaku: the engine in C is not there \(no extension\).*config\.hikyaku\.engine = "ruby"/, output)
  end

  WRONG = {
    "config.hikyaku.histroy = 1" => /ERROR: Hikyaku: config\.hikyaku: unknown setting histroy; did you mean history\?/,
    'config.hikyaku.hub = "unix:/run/hub.sock"' => /ERROR: Hikyaku: config\.hikyaku\.hub is set, so the hub is elsewhere/,
    'raise "broken"' => /ERROR: Hikyaku: the application, whose settings the hub has, does not start/
  }.freeze

  test "what is wrong stops Puma before it serves, with one sentence" do
    WRONG.each do |line, sentence|
      @folder = RailsServer::Folder.new({**FILES, "config/initializers/zz_wrong.rb" => "Rails.application.configure { #{line} }\n"})
      output, status = @folder.run("timeout", "180", *RailsServer::PUMA, PORT: RailsServer.free_port.to_s)
      assert_equal 1, status.exitstatus, output
      assert_match sentence, output
      refute_match(/Listening/, output)
      @folder.remove
    end
    @folder = RailsServer::Folder.new({**FILES, "config/puma.rb" => "#{PUMA}hikyaku heartbeat: 3\n"})
    output, = @folder.run("timeout", "180", *RailsServer::PUMA, PORT: RailsServer.free_port.to_s)
    assert_match(/ERROR: Hikyaku: .*config\.hikyaku.*must go/, output)
  end
end
