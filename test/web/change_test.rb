# frozen_string_literal: true

require "test_helper"
require "hikyaku/config"
require "hikyaku/server/middleware"
require "hikyaku/web"
require "logger"
require "minitest/mock"
require "stringio"

# What a change leaves in logs, and what it is counted as. All else of it: test/protocol/live_streams_test.rb.
class ChangeTest < Minitest::Test
  HUB = "/.well-known/mercure"

  def setup
    @log = StringIO.new
    @logger = Logger.new(@log, level: :debug)
    @web = Hikyaku::Web.new(Hikyaku::Config.new(anonymous: true, engine: "ruby", resource_identifier: "https://hub.example.com#{HUB}"), logger: @logger)
    @app = Hikyaku::Server::RequestLog.new(@web, @logger)
  end

  def call(method, path, body = "", **env)
    @app.call({"REQUEST_METHOD" => method, "SCRIPT_NAME" => "", "PATH_INFO" => path, "QUERY_STRING" => "", "SERVER_PROTOCOL" => "HTTP/1.1",
      "CONTENT_TYPE" => "application/x-www-form-urlencoded", "rack.url_scheme" => "https", "rack.input" => StringIO.new(body), **env})
  end

  test "no log shows a capability, whatever becomes of the request, nor does anything that is inspected" do
    _, headers, stream = call("GET", HUB, "QUERY_STRING" => "match=/a", "HTTP_HIKYAKU_STREAM" => "1")
    capability = headers.fetch("hikyaku-stream")
    path = "#{HUB}/streams/#{capability}"
    statuses = [["POST", path, "match=/a"], ["POST", path, ""], ["GET", path, ""], ["POST", "#{path}/x", "match=/a"], ["OPTIONS", path, ""]].map { |request| call(*request).first }
    assert_equal [204, 400, 405, 404, 204], statuses
    @web.hub.stub(:change, ->(*) { raise "a mistake" }) { assert_equal 500, call("POST", path, "match=/a").first }
    refute_includes @log.string, capability
    assert_includes @log.string, "POST #{HUB}/streams/… 204"
    refute_includes [@web, @web.hub, stream.subscriber].map(&:inspect).join, capability
    stream.close
  end

  test "other paths are logged as they are" do
    ["/a", "/streams", "/streams/", "#{HUB}/subscribers/x"].each { |path| assert_equal path, Hikyaku::Web::Change.loggable(path) }
    odd = +"/caf\xE9/streams/x"
    assert_equal [odd.encoding, "/caf\xE9/streams/…".b], Hikyaku::Web::Change.loggable(odd).then { |path| [path.encoding, path.b] }
  end

  test "a change that has to wait is counted as that" do
    _, headers, stream = call("GET", HUB, "QUERY_STRING" => "match=/a", "HTTP_HIKYAKU_STREAM" => "1")
    @web.hub.stub(:change, ->(*, **) { raise Hikyaku::TooManyRewinds, "wait" }) do
      assert_equal [429, "1"], call("POST", "#{HUB}/streams/#{headers["hikyaku-stream"]}", "match=/a").then { |status, answer, _| [status, answer["retry-after"]] }
    end
    assert_equal({"too_many_rewinds" => 1}, @web.refusals.to_h)
    stream.close
  end
end
