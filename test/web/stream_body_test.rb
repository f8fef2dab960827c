# frozen_string_literal: true

require "test_helper"
require "hikyaku/config"
require "hikyaku/web"
require "socket"
require "timeout"

# A stream's subscriber, when something goes wrong between the request and its connection.
class WebStreamBodyTest < Minitest::Test
  ENVIRONMENT = {"REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/.well-known/mercure", "QUERY_STRING" => "match=/a",
                 "SERVER_PROTOCOL" => "HTTP/1.1", "rack.url_scheme" => "http", "REMOTE_ADDR" => "127.0.0.1"}.freeze

  def web(engine) = Hikyaku::Web.new(Hikyaku::Config.new(dev: true, engine: engine))

  %w[c ruby].each do |engine|
    test "no subscriber stays behind when the socket cannot be had (#{engine})" do
      web = self.web(engine)
      ours, theirs = UNIXSocket.pair
      [ours.tap(&:close), theirs.tap { |socket| socket.define_singleton_method(:dup) { raise Errno::EMFILE } }].each do |socket|
        body = web.call(ENVIRONMENT.dup)[2]
        assert_equal 1, web.hub.stats[:subscribers]
        assert_raises(IOError, SystemCallError) { body.call(socket) }
        body.close
        assert_equal 0, web.hub.stats[:subscribers]
      end
      theirs.close
    end

    test "nor when the server interrupts before there is an answer (#{engine})" do
      web = self.web(engine)
      env = ENVIRONMENT.merge(Hikyaku::Web::Request::GRANT => nil)
      env.define_singleton_method(:[]=) { |name, value| (name == Hikyaku::Web::Request::GRANT) ? raise(NoMemoryError) : super(name, value) }
      assert_raises(NoMemoryError) { web.call(env) }
      assert_equal 0, web.hub.stats[:subscribers]
    end
  end
end
