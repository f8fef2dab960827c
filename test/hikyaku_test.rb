# frozen_string_literal: true

require "test_helper"
require "hikyaku"
require "logger"
require "tmpdir"

# `Hikyaku.publish` in a process that finds its hub by a folder, and outlives it.
class BesideTest < Minitest::Test
  Folder = Hikyaku::Server::Sidecar::Folder

  def setup
    Hikyaku.reset
    @path = Dir.mktmpdir
  end

  def teardown
    @server&.stop
    Hikyaku.reset
    ENV.delete(Folder::VARIABLE)
    Folder.default = nil
    FileUtils.rm_rf(@path)
  end

  # One life of the hub, with a key of its own.
  def serve(key, port)
    folder = Folder.new(@path, temporary: false)
    config = Hikyaku::Config.new(listen: "unix:#{folder.socket}", resource_identifier: "http://localhost:#{port}/hub", path: "/hub", anonymous: true,
      issuers: [{issuer: "sidecar", publisher_key: key * 40}])
    @server = Hikyaku::Server.new(config, logger: Logger.new(nil)).start
    folder.tell(path: "/hub", resource_identifier: config.resource_identifier, issuer: "sidecar", key: key * 40)
  end

  {
    "the environment names" => ->(path) { ENV[Folder::VARIABLE] = path },
    "is the default" => ->(path) { Folder.default = path }
  }.each do |how, say|
    test "a process that knows the hub by the folder that #{how} finds the next one there, with another key" do
      instance_exec(@path, &say)
      serve("a", 3000)
      first = Hikyaku.publish("/books", "one")
      assert_equal 0, Hikyaku.disconnect(subject: "user-1")
      @server.stop
      serve("b", 3001)
      refute_equal first, Hikyaku.publish("/books", "two")
    end
  end

  test "in the default folder a hub that is gone is none; in one that the environment names it is away" do
    Folder.default = @path
    error = assert_raises(Hikyaku::NoHub) { Hikyaku.publish("/books", "x") }
    assert_match(/no server of this application and this user answers in #{@path}; .*HIKYAKU_SIDECAR.*HIKYAKU_HUB/, error.message)
    serve("a", 3000)
    Hikyaku.publish("/books", "x")
    @server.stop
    assert_raises(Hikyaku::NoHub) { Hikyaku.publish("/books", "x") }
    ENV[Folder::VARIABLE] = @path
    assert_raises(Hikyaku::Publisher::Unreachable) { Hikyaku.publish("/books", "x") }
    ENV[Folder::VARIABLE] = "#{@path}/nowhere"
    Hikyaku.reset
    assert_raises(Hikyaku::Server::Sidecar::Absent) { Hikyaku.publish("/books", "x") }
  end
end
