# frozen_string_literal: true

require "test_helper"
require "hikyaku/server/sidecar/hub_process"
require "timeout"
require "tmpdir"

# The hub's side of the way to the process that runs it.
class ParentPipeTest < Minitest::Test
  def setup
    @mine, theirs = UNIXSocket.pair
    theirs.autoclose = false
    @env = {"HIKYAKU_PARENT_PIPE" => theirs.fileno.to_s}
    @folder = Dir.mktmpdir
  end

  def teardown
    @mine.close
    FileUtils.rm_rf(@folder)
  end

  def inherited(folder: @folder, **settings)
    @mine.puts(JSON.generate(settings: settings, handover: "/run/handover.sock", folder: folder))
    Hikyaku::Server::Sidecar::ParentPipe.inherited(@env)
  end

  def ready(pipe, handover: false)
    stops = Queue.new
    pipe.ready(handover: handover) { stops << true }
    assert_equal handover ? "ready handover\n" : "ready\n", @mine.gets
    assert_empty stops
    yield
    Timeout.timeout(60) { assert stops.pop }
  end

  test "settings come over it, and nothing of it stays in the environment" do
    pipe = inherited(heartbeat: 3, publisher_key: "é")
    assert_equal [{heartbeat: 3, publisher_key: "é"}, "/run/handover.sock"], [pipe.settings, pipe.handover]
    assert_empty @env
  end

  test "a process that nobody runs has none" do
    [{}, {"HIKYAKU_PARENT_PIPE" => ""}, {"HIKYAKU_PARENT_PIPE" => "x"}, {"HIKYAKU_PARENT_PIPE" => "99999"}].each { |env| assert_nil Hikyaku::Server::Sidecar::ParentPipe.inherited(env) }
  end

  test "who is told to stop stops, and leaves the folder to those who told it" do
    pipe = inherited
    ready(pipe, handover: true) { @mine.puts("stop") }
    pipe.close
    assert_path_exists @folder
  end

  test "who is left alone stops, and takes the folder away, if it was made for that" do
    pipe = inherited
    ready(pipe) { @mine.close }
    pipe.close
    refute_path_exists @folder
  end

  test "a folder that somebody chose stays" do
    pipe = inherited(folder: nil)
    ready(pipe) { @mine.close }
    pipe.close
    assert_path_exists @folder
  end

  test "who cannot begin says why, in one line" do
    inherited.failed("this\nis wrong")
    assert_equal "failed this is wrong\n", @mine.gets
  end

  test "that nobody hears is no mistake" do
    pipe = inherited
    @mine.close
    stops = Queue.new
    pipe.failed("x")
    pipe.ready(handover: true) { stops << true }
    Timeout.timeout(60) { assert stops.pop }
  end
end
