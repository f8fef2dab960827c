# frozen_string_literal: true

require "test_helper"
require "hikyaku/broker/server"
require "hikyaku/server/log"
require "stringio"

class BrokerAuthPoolTest < Minitest::Test
  Server = Hikyaku::Broker::Server

  def setup
    @log = StringIO.new
  end

  def teardown = @pool&.close

  def pool(&authenticator) = @pool = Server::AuthPool.new(authenticator, logger: Hikyaku::Server::Log.new(@log))

  def request(serial) = Hikyaku::Broker::AuthRequest.new(serial: serial, identity: "", credentials: "s3cret", kind: 1, address: "192.0.2.1")

  test "a request that would be the 1,025th to wait is refused, and the others are decided" do
    pool { |request| Server::Decision.permit([], until_ms: request.serial) }
    assert_equal [nil] * 1024, Array.new(1024) { |serial| @pool.submit(request(serial)) }
    assert_match(/too many clients/, @pool.submit(request(1024)).reason)
    decided = Queue.new
    @pool.start { |request, decision| decided << [request.serial, decision.until_ms] }
    assert_equal Array.new(1024) { |serial| [serial, serial] }, Array.new(1024) { decided.pop }.sort
  end

  test "requests of another source are decided until it has no more, and a refusal is logged without credentials" do
    requests = [request(1), request(2)]
    decided = Queue.new
    pool { |request| Server::Decision.refuse("no") }
    threads = @pool.start(-> { requests.shift }) { |request, decision| decided << [request.serial, decision.reason] }
    threads.each(&:join)
    assert_equal [[1, "no"], [2, "no"]], Array.new(2) { decided.pop }.sort
    assert_equal 2, @log.string.scan("broker: refused 192.0.2.1: no").size
    refute_includes @log.string, "s3cret"
  end
end
