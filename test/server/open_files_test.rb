# frozen_string_literal: true

require "test_helper"
require "hikyaku/server/open_files"
require "open3"
require "rbconfig"
require "support/http_client"

class OpenFilesTest < Minitest::Test
  OpenFiles = Hikyaku::Server::OpenFiles

  test "the limit is raised as far as it goes" do
    file = File.expand_path("../../lib/hikyaku/server/open_files.rb", __dir__)
    out, status = Open3.capture2(RbConfig.ruby, "-r", file, "-e", <<~RUBY)
      hard = Process.getrlimit(:NOFILE).last
      Process.setrlimit(:NOFILE, 200, [hard, 500].min)
      print Hikyaku::Server::OpenFiles.raise_limit, " ", Process.getrlimit(:NOFILE).first
    RUBY
    assert status.success?
    assert_equal "500 500", out
  end

  test "some files are left for other purposes, but most are for subscribers" do
    assert_equal 20_000 - 256, OpenFiles.for_subscribers(20_000)
    assert_equal 768, OpenFiles.for_subscribers(1024)
    assert_equal 48, OpenFiles.for_subscribers(64)
    assert_equal 10_000_000, OpenFiles.for_subscribers(Process::RLIM_INFINITY), "as many as the setting takes"
  end

  test "a broker takes as many clients as are wanted, if so many files may be open beside its own" do
    assert_equal 10_000, OpenFiles.for_broker(20_000, 10_000, used: 10)
    assert_equal 1024 - 106, OpenFiles.for_broker(1024, 10_000, used: 10)
    assert_equal 150, OpenFiles.for_broker(256, 10_000, used: 10)
    assert_equal 16, OpenFiles.for_broker(64, 10_000, used: 10)
    assert_equal 3, OpenFiles.for_broker(64, 3, used: 10)
    assert_operator OpenFiles.used, :>, 3
  end

  test "a hub and a broker in one process share what there is" do
    assert_equal [10_000, 90_000 - 32], OpenFiles.for_both(100_000, 10_000, used: 10)
    assert_equal [459, 1024 - 459 - 32], OpenFiles.for_both(1024, 10_000, used: 10)
    assert_equal [818, 1024 - 818 - 32], OpenFiles.for_both(1024, 10_000, subscribers: 100, used: 10)
    assert_equal [229, 1024 - 229 - 32], OpenFiles.for_both(1024, 10_000, subscribers: 1_000_000, used: 10)
    [64, 100, 256, 300, 1024, 4096, 20_000, 1_048_576].each do |limit|
      clients, rest = OpenFiles.for_both(limit, 10_000, used: 10)
      assert_operator clients, :>, 0
      assert_operator clients + OpenFiles.for_connections(rest), :<, limit - [40, limit / 8].min, limit.to_s
    end
  end
  # The hub in Puma, in an application that has the files of a process with 120.
  MOUNTED = <<~RUBY
    require "hikyaku"
    require "logger"
    require "puma"
    require "puma/server"
    hub = Hikyaku.host(Hikyaku::Web.new(Hikyaku::Config.new(anonymous: true, engine: ARGV.first), logger: Logger.new(IO::NULL)))
    app = ->(env) { hub.serves?(env["PATH_INFO"]) ? hub.call(env) : [200, {}, [Hikyaku.publish("/news", "on")]] }
    server = Puma::Server.new(app, nil, min_threads: 1, max_threads: 3, log_writer: Puma::LogWriter.null)
    server.add_tcp_listener("127.0.0.1", 0)
    server.run
    $stdout.puts(server.connected_ports.first)
    $stdout.flush
    $stdin.read
    server.stop(true)
    hub.shutdown
  RUBY

  %w[ruby c].each do |engine|
    test "mounted in Puma, with the engine #{engine}, subscribers leave files for the application" do
      library = File.expand_path("../../lib", __dir__)
      Open3.popen2(RbConfig.ruby, "-I", library, "-e", MOUNTED, engine, rlimit_nofile: 120) do |input, output, _|
        client = HttpClient.new(Integer(output.gets))
        streams = subscribe_until_refused(client)
        assert_equal 90, streams.size
        3.times { assert_equal 200, client.request("GET", "/publish").status }
        streams.each { |stream| assert_equal %w[on on on], stream.take(3).map(&:data) }
      ensure
        streams&.each(&:close)
        input.close
        output.read
      end
    end
  end

  private

  def subscribe_until_refused(client)
    120.times do
      stream = client.stream("GET", "/.well-known/mercure?match=/news")
      return @streams.tap { assert_equal 429, stream.status } unless stream.status == 200
      (@streams ||= []) << stream
    end
    flunk "nobody is refused"
  end
end
