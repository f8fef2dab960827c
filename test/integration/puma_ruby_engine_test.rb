# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/puma_server"
require "support/without_native"

# `plugin :hikyaku` where the engine in C is not there, or is not wanted.
class PumaRubyEngineTest < Minitest::Test
  WARNING = /WARN .*the engine in Ruby serves, which is slower: the engine in C is not there \(no extension\)/

  def teardown
    @streams&.each(&:close)
    @server&.stop
  end

  def serve(settings, **options)
    @server = PumaServer.new(settings, env: {"RUBYOPT" => WithoutNative::OPTION}, **options)
  end

  def follow(count) = @streams = Array.new(count) { @server.follow }

  test "in developer mode it warns, and the engine in Ruby carries more streams than Puma has threads" do
    [nil, 2].each do |workers|
      serve("hikyaku dev: true", workers: workers)
      assert_match WARNING, @server.log
      assert_equal false, @server.about["handover"]
      follow(12)
      ids = Array.new(2) { |number| @server.get("/publish/public/#{number}") }
      @streams.each { |stream| assert_equal ids.zip(%w[0 1]), stream.take(2).map { |event| [event.id, event.data] } }
      @server.stop
      @streams.each(&:rest)
    end
  end

  test "streams and the answer to whoever has no token come from the hub, and a restart of the workers ends no request" do
    serve("hikyaku dev: true, anonymous: false", workers: 2, preload: false)
    assert_equal 401, @server.client.request("GET", "#{@server.path}?match=/news").status
    hub = @server.hub
    @server.phased_restart
    assert_equal hub, @server.hub
    assert_match(/\A#/, @server.get("/publish/public/1"))
  end

  test "a reader that goes away leaves nothing behind in the worker" do
    serve("hikyaku dev: true, heartbeat: 1")
    opened = sockets
    follow(5)
    assert_operator sockets, :>=, opened + 10
    @streams.each(&:close)
    @server.await("the streams to end") { sockets <= opened }
  end

  test "elsewhere one sentence names the setting, and with the setting it serves" do
    serve("hikyaku anonymous: true", wait: false)
    refute_predicate @server.status, :success?
    assert_match(/ERROR: Hikyaku: the engine in C is not there \(no extension\): choose the one in Ruby .*config\.hikyaku\.engine = "ruby".*--engine ruby/, @server.log)
    @server.stop
    serve("hikyaku anonymous: true, engine: 'ruby'")
    refute_match WARNING, @server.log
    follow(1)
    @server.get("/publish/public/1")
    assert_equal "1", @streams.first.next.data
  end

  private

  def sockets = Dir["/proc/#{@server.pid}/fd/*"].count { |file| File.readlink(file).start_with?("socket:") rescue false } # rubocop:disable Style/RescueModifier
end
