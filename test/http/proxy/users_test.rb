# frozen_string_literal: true

require "test_helper"
require "http/proxy/proxied"
require "hikyaku/http/proxy/admission"

# What several users of one proxy see of each other: nothing. And what becomes of who does not say who they are.
class HTTPProxyUsersTest < Minitest::Test
  include Proxied

  USERS = {"ada" => "secret", "bob" => "hidden"}.freeze
  private_constant :USERS

  test "each user is shown their own pages and servers" do
    with(:well_behaved, users: USERS) do |server, proxy|
      2.times { |i| assert_equal 200, asks(proxy, "ada", "GET #{server.url("/adas/#{i}.html")}", "Accept: text/html").first }
      asks(proxy, "bob", "GET #{server.url("/bobs.html")}", "Accept: text/html")
      shown = USERS.keys.map { |user| report(proxy, user) }
      assert_equal [[true, false], [false, true]], shown.map { |html| %w[/adas/1.html /bobs.html].map { |path| html.include?(path) } }
      assert_equal [true, true], shown.map { |html| html.include?(host(server)) }
      asks(proxy, "ada", "GET http://localhost:#{server.port}/", "Accept: text/html")
      assert_equal [true, false], USERS.keys.map { |user| report(proxy, user).include?("localhost:#{server.port}") }
    end
  end

  test "the switch is each user's own, and its form is" do
    run_proxy(users: USERS) do |proxy|
      tokens = USERS.keys.to_h { |user| [user, report(proxy, user)[/name="token" value="([^"]+)"/, 1]] }
      assert_equal 403, turn(proxy, "bob", tokens["ada"])
      assert_equal 303, turn(proxy, "bob", tokens["bob"])
      assert_equal [true, false], USERS.keys.map { |user| proxy.user_state(user).prefetch? }
    end
  end

  test "two users share nothing that was kept" do
    answer = ->(bytes) { "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\r\nx" if bytes.end_with?("\r\n\r\n") }
    origin = Proxied::Origin.new(&answer)
    run_proxy(users: USERS) do |proxy|
      %w[ada ada bob bob].each { |user| assert_equal 200, asks(proxy, user, "GET http://#{host(origin)}/a").first }
      assert_equal 2, origin.received.join.scan("GET ").size
    end
  ensure
    origin&.close
  end

  test "those who do not say who they are shut nobody out" do
    with(:well_behaved, users: USERS, max_connections: 2) do |server, proxy|
      strangers = Array.new(40) { connect(proxy) }
      2.times { assert_equal 200, asks(proxy, "ada", "GET #{server.url("/a")}").first }
      assert strangers.first.wait_readable(60)
      assert_nil strangers.first.read(1)
      assert_equal 503, asks(proxy, "bob", "GET #{server.url("/a")}").first
    end
  end

  test "a stranger has a short time to say who they are, and one who has been is none" do
    [[nil, 407], ["ada", 200]].each do |user, status|
      with(:well_behaved, users: USERS) do |server, proxy|
        near, far = UNIXSocket.pair
        thread = Thread.new { Hikyaku::HTTP::Proxy::ConnectionHandler.new(far, proxy, authentication_timeout: 0.3).run }
        2.times { assert_equal status, ask(near, request("GET #{server.url("/a")}", user)).first }
        user ? assert_nil(near.wait_readable(0.5)) : assert_nil(near.read(1))
        near.close
        thread.join
      end
    end
  end

  test "of the connections without authentication the first goes when there is one too many" do
    listener, gate = TCPServer.new("127.0.0.1", 0), Queue.new
    pairs = Array.new(4) { [TCPSocket.new("127.0.0.1", listener.addr[1]), listener.accept] }
    admission = Hikyaku::HTTP::Proxy::Admission.new(max: 9, authentication: true, max_unauthenticated: 2)
    serve = ->(pair) { admission.serve(pair.last) { gate.pop } }
    pairs.first(3).each(&serve)
    assert admission.authenticated(pairs[1].last)
    serve.call(pairs[3])
    assert pairs[0].first.wait_readable(60)
    assert_nil pairs[0].first.read(1)
    assert(pairs.drop(1).none? { |near, _| near.wait_readable(0) })
  ensure
    admission.close
    [listener, *pairs.flatten].each(&:close)
  end

  private

  def request(line, user, *fields, body: "")
    said = user ? ["Proxy-Authorization: Basic #{["#{user}:#{USERS.fetch(user)}"].pack("m0")}"] : []
    said << "Content-Length: #{body.bytesize}" unless body.empty?
    "#{["#{line} HTTP/1.1", "Host: a", *said, *fields].join("\r\n")}\r\n\r\n#{body}"
  end

  def asks(proxy, user, line, *fields, **more) = ask(connect(proxy), request(line, user, *fields, **more))

  def report(proxy, user) = asks(proxy, user, "GET http://hikyaku.proxy/").last

  def turn(proxy, user, token) = asks(proxy, user, "POST http://hikyaku.proxy/switch", body: "token=#{token}").first
end
