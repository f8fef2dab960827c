# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"
require "minitest/mock"
require "openssl"
require "socket"
require "support/self_signed"

# Making a connection, when the program has better things to do, or what it asks raises.
class HTTPClientConnectorTest < Minitest::Test
  HTTP = Hikyaku::HTTP
  LATER = 1_000.0
  private_constant :HTTP, :LATER

  test "a connection that stands when its time is up is taken" do
    TCPServer.open("127.0.0.1", 0) do |server|
      dialer = dialer("127.0.0.1", server.addr[1])
      dialer.step(0.0)
      IO.select(nil, dialer.waiting, nil, 60) if dialer.waiting.any?
      assert dialer.step(LATER)
    ensure
      dialer&.socket&.close
    end
  end

  test "a handshake that can be finished when its time is up is finished" do
    TCPServer.open("127.0.0.1", 0) do |server|
      serving = Thread.new { secured(server.accept).accept }
      opening = opening("https://localhost:#{server.addr[1]}/")
      opening.step(0.0) until opening.reading.any?
      assert IO.select(opening.reading, nil, nil, 60)
      io = opening.step(LATER)
      assert_instance_of OpenSSL::SSL::SSLSocket, io
      serving.value
    ensure
      opening&.close
    end
  end

  test "where nothing is verified, a certificate may be of another name" do
    TCPServer.open("127.0.0.1", 0) do |server|
      serving = Thread.new { secured(server.accept).accept }
      opening = opening("https://127.0.0.1:#{server.addr[1]}/")
      until (io = opening.step(0.0))
        assert IO.select(opening.reading, opening.writing, nil, 60)
      end
      assert_instance_of OpenSSL::SSL::SSLSocket, io
      serving.value
    ensure
      opening&.close
    end
  end

  test "localhost, and what is below it, is the loopback: nobody is asked for it" do
    TCPServer.open("127.0.0.1", 0) do |server|
      %w[localhost a.localhost localhost.].each do |name|
        dialer = dialer(name, server.addr[1])
        Addrinfo.stub(:getaddrinfo, ->(*) { raise SocketError, "somebody was asked" }) do
          IO.select(nil, dialer.waiting, nil, 0.01) until dialer.step(0.0)
        end
        assert_equal "127.0.0.1", dialer.socket.remote_address.ip_address
        dialer.socket.close
      end
    end
  end

  test "a proxy that says more than that the tunnel stands is not believed" do
    {"" => nil, "SSH-2.0" => /said something before anybody asked/}.each do |more, message|
      TCPServer.open("127.0.0.1", 0) do |proxy|
        serving = Thread.new { proxy.accept.tap { |socket| socket.readpartial(4_096) && socket.write("HTTP/1.1 200 OK\r\n\r\n#{more}") } }
        opening = opening("https://a.example/", proxy: "http://127.0.0.1:#{proxy.addr[1]}")
        go_on = lambda do
          loop do
            opening.step(0.0)
            break if opening.instance_variable_get(:@phase) == :handshake
            IO.select(opening.reading, opening.writing, nil, 60)
          end
        end
        message ? assert_match(message, assert_raises(HTTP::ConnectFailed, &go_on).message) : go_on.call
        serving.value.close
      ensure
        opening&.close
      end
    end
  end

  test "a handshake that cannot be is not waited for any longer" do
    TCPServer.open("127.0.0.1", 0) do |server|
      opening = opening("https://localhost:#{server.addr[1]}/")
      opening.step(0.0) until opening.reading.any?
      assert_equal :handshake, assert_raises(HTTP::TimedOut) { opening.step(LATER) }.phase
    ensure
      opening&.close
    end
  end

  test "whatever the resolver says is told as a connection that did not come about" do
    dialer = dialer("a\0b.example", 80)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    error = assert_raises(HTTP::ConnectFailed) do
      Thread.pass until dialer.step(0.0) || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    end
    assert_match(/no address for/, error.message)
  end

  test "what is asked about addresses may refuse all, say nothing, or raise" do
    {->(*) { [] } => /none of the addresses of 127.0.0.1/, ->(*) {} => /none of the addresses/, ->(*) { raise "no moon" } => /no moon \(RuntimeError\)/,
     ->(*) { raise HTTP::InvalidURL, "not there" } => /\Anot there\z/}.each do |check, message|
      assert_match message, assert_raises(HTTP::ConnectFailed) { dialer("127.0.0.1", 9, check: check).step(0.0) }.message
    end
  end

  test "a name that TLS does not take is a connection that did not come about" do
    TCPServer.open("127.0.0.1", 0) do |proxy|
      serving = Thread.new { proxy.accept.tap { |socket| socket.readpartial(4_096) && socket.write("HTTP/1.1 200 OK\r\n\r\n") } }
      opening = opening("https://#{"x" * 300}/", proxy: "http://127.0.0.1:#{proxy.addr[1]}")
      error = assert_raises(HTTP::ConnectFailed) do
        50.times do
          opening.step(0.0)
          IO.select(opening.reading, opening.writing, nil, 60)
        end
      end
      assert_match(/no agreement about TLS/, error.message)
      serving.value.close
    ensure
      opening&.close
    end
  end

  private

  def dialer(host, port, check: nil) = HTTP::Client::Dialer.new(host, port, timeouts: HTTP::Client::Timeouts.new, wake: -> {}, check: check)

  def opening(url, proxy: nil)
    route = HTTP::Client::Route.to(HTTP::Address.parse(url).origin, proxy: proxy)
    HTTP::Client::Connector.new(route, HTTP::Client::Settings.new(proxy: nil, verify: false), wake: -> {})
  end

  def secured(socket)
    key, certificate = SelfSigned.pair
    context = OpenSSL::SSL::SSLContext.new
    context.cert = certificate
    context.key = key
    OpenSSL::SSL::SSLSocket.new(socket, context)
  end
end
