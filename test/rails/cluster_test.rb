# frozen_string_literal: true

require "test_helper"
require "support/rails_server"

# A server whose processes could not share the hub.
class ClusterTest < Minitest::Test
  REFUSAL = /the server has several processes, and a hub lives in one: let Puma run it beside them/

  def setup = @folder = RailsServer::Folder.new

  def teardown = @folder.remove

  test "whoever starts several processes is told at once, and of a daemon the log tells it" do
    output, status = server
    refute status.success?, output
    assert_equal 1, output.scan(REFUSAL).size, output
    File.write(log, "")

    output, status = server("--daemon")
    assert status.success?, output
    deadline = now + 180
    sleep 0.05 until File.read(log).match?(REFUSAL) || now > deadline
    assert_match REFUSAL, File.read(log)
  end

  private

  def log = "#{@folder.path}/log/development.log"

  def server(*options) = @folder.run("bin/rails", "server", "-p", RailsServer.free_port.to_s, "-b", "127.0.0.1", *options, WEB_CONCURRENCY: "2")

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
