# frozen_string_literal: true

require "test_helper"
require "hikyaku/server/lifeline"
require "timeout"
require "tmpdir"

# The hub's side of the way to the process that runs it.
class LifelineTest < Minitest::Test
  def setup
    @mine, theirs = UNIXSocket.pair
    theirs.autoclose = false
    @env = {"HIKYAKU_LIFELINE" => theirs.fileno.to_s}
    @folder = Dir.mktmpdir
  end

  def teardown
    @mine.close
    FileUtils.rm_rf(@folder)
  end

  def inherited(folder: @folder, **settings)
    @mine.puts(JSON.generate(settings: settings, handover: "/run/handover.sock", folder: folder))
    Hikyaku::Server::Lifeline.inherited(@env)
  end

  def ready(lifeline, handover: false)
    stops = Queue.new
    lifeline.ready(handover: handover) { stops << true }
    assert_equal handover ? "ready handover\n" : "ready\n", @mine.gets
    assert_empty stops
    yield
    Timeout.timeout(60) { assert stops.pop }
  end

  test "settings come over it, and nothing of it stays in the environment" do
    lifeline = inherited(heartbeat: 3, publisher_key: "é")
    assert_equal [{heartbeat: 3, publisher_key: "é"}, "/run/handover.sock"], [lifeline.settings, lifeline.handover]
    assert_empty @env
  end

  test "a process that nobody runs has none" do
    [{}, {"HIKYAKU_LIFELINE" => ""}, {"HIKYAKU_LIFELINE" => "x"}, {"HIKYAKU_LIFELINE" => "99999"}].each { |env| assert_nil Hikyaku::Server::Lifeline.inherited(env) }
  end

  test "who is told to stop stops, and leaves the folder to those who told it" do
    lifeline = inherited
    ready(lifeline, handover: true) { @mine.puts("stop") }
    lifeline.close
    assert_path_exists @folder
  end

  test "who is left alone stops, and takes the folder away, if it was made for that" do
    lifeline = inherited
    ready(lifeline) { @mine.close }
    lifeline.close
    refute_path_exists @folder
  end

  test "a folder that somebody chose stays" do
    lifeline = inherited(folder: nil)
    ready(lifeline) { @mine.close }
    lifeline.close
    assert_path_exists @folder
  end

  test "who cannot begin says why, in one line" do
    inherited.failed("this\nis wrong")
    assert_equal "failed this is wrong\n", @mine.gets
  end

  test "that nobody hears is no mistake" do
    lifeline = inherited
    @mine.close
    stops = Queue.new
    lifeline.failed("x")
    lifeline.ready(handover: true) { stops << true }
    Timeout.timeout(60) { assert stops.pop }
  end
end
