# frozen_string_literal: true

require "test_helper"
require "support/client_process"
require "support/http_client"
require "support/rails_server"

# The console, the runner and tasks of a Rails application, beside its server or without one.
class BesideTheServerTest < Minitest::Test
  PATH = "/.well-known/mercure"
  # The door of the example would speak in between.
  QUIET = {"lib/shop.rb" => File.read(File.join(RailsServer::EXAMPLE, "lib/shop.rb")).sub("loop do", "loop do\n          sleep")}.freeze
  TASK = {"lib/tasks/seed.rake" => %(task(seed: :environment) { Hikyaku.publish("/visitors", "from a task") }\n)}.freeze
  PUBLISH = %(print Hikyaku.publish("/visitors", "from the runner").inspect)
  # Publishes what it reads, as somebody in a console does.
  CONSOLE = <<~RUBY
    $stdout.sync = true
    input = File.open("input")
    while (line = input.gets)
      puts Hikyaku.publish("/visitors", line.chomp).inspect
    end
  RUBY
  ABSENT = %r{Hikyaku: nothing is published: no hub is known here.*: no server of this application and this user answers in .*/tmp/hikyaku; start the server, .*HIKYAKU_SIDECAR.*HIKYAKU_HUB}

  def setup
    @folder = RailsServer::Folder.new({**QUIET, **TASK})
    @running = []
  end

  def teardown
    @streams&.each(&:close)
    @running.reverse_each(&:stop)
    @console&.close
    @folder.remove
  end

  test "beside `rails server` on any port the runner and tasks reach its pages" do
    shop = rails_server
    stream = follow(shop)
    assert_equal [0o700, 0o600, 0o600], ["", "/hub.json", "/hub.sock"].map { |name| File.stat("#{place}#{name}").mode & 0o777 }
    output, status = runner
    assert status.success?, output
    assert_equal [output, "from the runner"], stream.next.then { |event| [event.id.inspect, event.data] }
    output, status = @folder.run("bin/rails", "seed")
    assert status.success?, output
    assert_equal "from a task", stream.next.data
    output, = @folder.run("bin/rails", "hikyaku:doctor", HIKYAKU_DOCTOR: "--only reach")
    assert_match(%r{ok    reach +http://localhost:#{shop.port}#{PATH} }, output)
    shop.stop
    refute_path_exists "#{place}/hub.json"
    refute_path_exists "#{place}/hub.sock"
  end

  test "a hub whose address is said takes the publish on whatever port, by any name of this machine" do
    shop = rails_server
    stream = follow(shop)
    %w[localhost 127.0.0.1].each do |name|
      output, status = runner(HIKYAKU_HUB: "http://#{name}:#{shop.port}#{PATH}")
      assert status.success?, "#{name}: #{output}"
      assert_equal "from the runner", stream.next.data
    end
    assert_equal "http://localhost:#{shop.port}#{PATH}", metadata(shop)
  end

  test "`puma` is followed to its port, too, and what config/environments say for a new application does not count" do
    File.write("#{@folder.path}/config/initializers/url.rb", "Rails.application.routes.default_url_options = {host: \"localhost\", port: 3000}\n")
    File.write("#{@folder.path}/config/puma.rb", "threads 1\n")
    shop = start(RailsServer.new(@folder, PORT: nil))
    assert_equal "http://localhost:#{shop.port}#{PATH}", metadata(shop)
  end

  test "without a server development logs, once where it is seen, and production raises; a setting says otherwise" do
    output, status = runner(code: "2.times { #{PUBLISH} }; print Hikyaku.disconnect(subject: \"user-1\")")
    assert status.success?, output
    assert_match ABSENT, output
    assert_equal 1, output.scan("nothing is published").size
    assert_match(/^nilnil0\z/, output)
    assert_equal 3, File.read("#{@folder.path}/log/development.log").scan("nothing is published").size
    output, status = @folder.run("bin/rails", "seed")
    assert status.success?, output
    assert_match ABSENT, output

    output, status = runner(RAILS_ENV: "production")
    refute status.success?
    assert_match(/HIKYAKU_HUB.*\(Hikyaku::NoHub\)/, output)

    {"raise" => "development", "log" => "production"}.each do |reaction, environment|
      setting("config.hikyaku.without_hub = :#{reaction}")
      output, status = runner(RAILS_ENV: environment)
      assert_equal reaction == "log", status.success?, output
    end
    setting("config.hikyaku.without_hub = :ignore")
    output, status = runner
    refute status.success?
    assert_match(/config\.hikyaku\.without_hub must be :raise or :log, not :ignore/, output)
  end

  test "what a killed server has left counts for none, and the next server takes its place" do
    rails_server.stop("KILL")
    assert_path_exists "#{place}/hub.json"
    assert_path_exists "#{place}/hub.sock"
    output, status = runner
    assert status.success?, output
    assert_match ABSENT, output
    shop = rails_server
    stream = follow(shop)
    output, = runner
    assert_equal output, stream.next.id.inspect
  end

  test "a console that outlives the server finds the next one, on another port" do
    File.mkfifo("#{@folder.path}/input")
    shop = rails_server
    stream = follow(shop)
    @console = ClientProcess.new("bin/rails", "runner", CONSOLE, env: @folder.env, chdir: @folder.path)
    # Waits for the console.
    writer = File.open("#{@folder.path}/input", "w").tap { |pipe| pipe.sync = true }
    writer.puts "one"
    assert_equal "one", stream.next.data
    shop.stop
    writer.puts "two"
    @console.until(/^nil$/)
    shop = rails_server
    stream = follow(shop)
    writer.puts "three"
    assert_equal "three", stream.next.data
  ensure
    writer&.close
  end

  test "of two servers the one that was there first is found, and the other says so" do
    shop = rails_server
    stream = follow(shop)
    other = rails_server
    others = follow(other)
    assert_match(/another server of this application has .*tmp\/hikyaku: a console publishes to that server, and to this one with config\.hikyaku\.hub \(HIKYAKU_HUB\)/, log)
    runner
    assert_equal "from the runner", stream.next.data
    output, status = runner(code: PUBLISH.sub("from", "also from"), HIKYAKU_HUB: "http://localhost:#{other.port}#{PATH}")
    assert status.success?, output
    assert_equal "also from the runner", others.next.data
    other.stop
    assert_equal 0, runner.last.exitstatus
    assert_equal "from the runner", stream.next.data
  end

  test "`rails server --daemon` takes what the runner and its own actions publish before anybody has connected" do
    quick = "Rails.application.configure { config.action_controller.allow_forgery_protection = false }\n"
    File.write("#{@folder.path}/config/initializers/quick.rb", quick)
    %w[development production].each do |environment|
      shop = daemon(RAILS_ENV: environment)
      pid = Integer(File.read("#{@folder.path}/tmp/daemon.pid"))
      if environment == "development"
        output, status = runner
        assert status.success?, output
        assert_equal pid, JSON.parse(File.read("#{place}/hub.json")).fetch("pid")
      end
      assert_equal "303", Net::HTTP.post(URI("http://localhost:#{shop}/books/1/sale"), "").code
      stream = HttpClient.new(shop).stream("GET", "#{PATH}?match=/books/1&last_event_id=earliest", headers: {"host" => "localhost"})
      (@streams ||= []) << stream
      assert_equal "stock", stream.next.type
    ensure
      end_daemon
    end
  end

  test "a place where others may write is no place for a hub" do
    FileUtils.mkdir_p(place)
    File.chmod(0o777, place)
    shop = rails_server
    assert_match(/a console does not find this server, .*must belong to the user of this process/, log)
    assert_equal "200", shop.get("/books.json").code
    output, = runner
    assert_match ABSENT, output
  end

  test "production has no such place" do
    rails_server(RAILS_ENV: "production")
    refute_path_exists place
  end

  private

  def place = "#{@folder.path}/tmp/hikyaku"

  def log = File.read("#{@folder.path}/log/development.log")

  def setting(line) = File.write("#{@folder.path}/config/initializers/without.rb", "Rails.application.configure { #{line} }\n")

  def start(server) = server.tap { @running << server }

  # As `rails server -p PORT`: nothing but that says the port.
  def rails_server(**env)
    port = RailsServer.free_port
    start(RailsServer.new(@folder, "sh", "-c", "exec bin/rails server -p #{port} -P tmp/#{port}.pid -b 127.0.0.1", port: port, PORT: nil, **env))
  end

  # Returns its port.
  def daemon(**env)
    port = RailsServer.free_port
    output, status = @folder.run("bin/rails", "server", "--daemon", "-p", port.to_s, "-P", "tmp/daemon.pid", "-b", "127.0.0.1", **env)
    assert status.success?, output
    await("no server") { Net::HTTP.get_response(URI("http://localhost:#{port}/nothing")) }
    port
  end

  def end_daemon
    pid = Integer(File.read("#{@folder.path}/tmp/daemon.pid"))
    Process.kill(:TERM, pid)
    await("the daemon goes on") { !File.exist?("#{@folder.path}/tmp/daemon.pid") }
  rescue Errno::ENOENT, Errno::ESRCH
    nil
  end

  def await(otherwise, seconds = 60)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    until attempt { yield }
      flunk otherwise if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.05
    end
  end

  def attempt
    yield
  rescue SystemCallError
    nil
  end

  def runner(code: PUBLISH, **env) = @folder.run("bin/rails", "runner", code, **env)

  def follow(shop) = HttpClient.new(shop.port).stream("GET", "#{PATH}?match=/visitors", headers: {"host" => "localhost"}).tap { |stream| (@streams ||= []) << stream }

  def metadata(shop) = JSON.parse(shop.get("/.well-known/oauth-protected-resource#{PATH}").body).fetch("resource")
end
