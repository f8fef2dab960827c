# frozen_string_literal: true

require "test_helper"
require "http/proxy/proxied"
require "hikyaku/http/proxy/client_pool"

# A client for each set of credentials, and which of them go.
class HTTPProxyClientPoolTest < Minitest::Test
  include Proxied

  ClientPool = Hikyaku::HTTP::Proxy::ClientPool
  private_constant :ClientPool

  def setup
    @clients = ClientPool.new(Hikyaku::HTTP::Client::Memory.new(nil), max: 2, attended: true, proxy: nil)
  end

  def teardown = @clients.close

  test "who says the same has the same client, and nobody else has" do
    one, other, again = %w[a b a].map { |credentials| @clients.use(credentials, &:itself) }
    assert_same one, again
    refute_same one, other
    said = [["ada", [["cookie", "a=b"]]], ["ada", [["cookie", "c=d"]]], ["ada", [["authorization", "a=b"]]], ["bob", [["cookie", "a=b"]]], [nil, []]]
    assert_equal 5, said.map { |user, headers| ClientPool.credentials(user, headers) }.uniq.size
    assert_equal ClientPool.credentials("ada", [["cookie", "a=b"]]), ClientPool.credentials("ada", [["accept", "*/*"], ["cookie", "a=b"]])
  end

  test "of those that nobody uses the one that was used longest ago goes" do
    first, = %w[a b a c].map { |credentials| @clients.use(credentials, &:itself) }
    assert_equal 2, @clients.size
    assert_same first, @clients.use("a", &:itself)
  end

  test "clients go while many others come, and nobody waits for ever" do
    with_origin(->(bytes) { "HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n#{"x" * 50_000}" if bytes.end_with?("\r\n\r\n") }) do |origin, _|
      address = Hikyaku::HTTP::Address.parse("http://#{host(origin)}/")
      4.times do |round|
        threads = Array.new(60) do |number|
          Thread.new { 3.times { |time| @clients.use("#{round} #{number} #{time}", address.origin) { |client| client.open("#{address.url}#{number}", alone: false) { |stream| stream.each {} } } } }
        end
        assert threads.all? { |thread| thread.join(60) }
      ensure
        threads&.each(&:kill)
      end
    end
  end

  test "a client that is in use is not closed, and goes when it is not any more" do
    with_origin(->(bytes) { "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha#{"lf" if bytes.include?("/whole")}" if bytes.end_with?("\r\n\r\n") }) do |origin, _|
      @clients.use("busy") do |client|
        client.open("http://#{host(origin)}/half") do |stream|
          assert_equal "ha", stream.first
          %w[a b c].each { |credentials| @clients.use(credentials) { |other| assert_equal "half", other.get("http://#{host(origin)}/whole").body } }
          assert_same client, @clients.use("busy", &:itself)
          refute_predicate stream, :done?
        end
      end
      assert_equal 2, @clients.size
    end
  end

  test "a new set of credentials has the connections of others to that server closed, on which nothing is under way, and to no other" do
    @clients = ClientPool.new(Hikyaku::HTTP::Client::Memory.new(nil), attended: true, proxy: nil)
    with_origin(->(bytes) { "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" if bytes.end_with?("\r\n\r\n") && !bytes.include?("/never") }) do |origin, _|
      url = "http://#{host(origin)}/"
      @clients.use("a") { |client| client.get(url, url.sub("127.0.0.1", "localhost")) }
      busy = @clients.use("a") { |client| client.fetch("#{url}never") }
      wait_until { origin.received.join.include?("/never") }
      assert_equal 2, @clients.connections
      @clients.use("b", Hikyaku::HTTP::Address.parse(url).origin) { |client| client.get(url) }
      assert_equal 3, @clients.connections # one of them busy
      @clients.use("c", Hikyaku::HTTP::Address.parse(url).origin) { |client| client.get(url) }
      assert_equal 3, @clients.connections # that of b is gone
      @clients.close_idle
      assert_equal 1, @clients.connections
      busy.cancel
    end
  end

  test "of all clients there are so many connections, and so much is kept" do
    with_origin(->(bytes) { "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5000\r\n\r\n#{"x" * 5_000}" if bytes.end_with?("\r\n\r\n") }) do |origin, _|
      clients = ClientPool.new(Hikyaku::HTTP::Client::Memory.new(nil), max: 9, max_connections: 2, max_bytes: 12_000, attended: true, proxy: nil)
      %w[a b c d e].each do |credentials|
        clients.use(credentials) { |client| client.get("http://#{host(origin)}/#{credentials}") }
        assert_operator clients.connections, :<=, 3
        assert_operator clients.bytes, :<=, 12_000 + 7_000
      end
      assert_operator clients.bytes, :>, 5_000
      clients.close
    end
  end

  test "those in use may be more, and are fewer again" do
    use = lambda do |names|
      next assert_equal(4, @clients.size) if names.empty?
      @clients.use(names.first) { use.call(names.drop(1)) }
    end
    use.call(%w[a b c d])
    assert_equal 2, @clients.size
  end
end
