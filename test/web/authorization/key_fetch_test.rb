# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "hikyaku/web/authorization/remote_keys"

# Mercure draft-08, section "Protected Resource Metadata and Authorization Server Selection": fetching key sets with
# precautions against server-side request forgery.
class KeyFetchTest < Minitest::Test
  Fetch = Hikyaku::Web::Authorization::KeyFetch
  Policy = Hikyaku::Web::Authorization::AddressPolicy

  # Answers each connection with the next of the given texts.
  def serve(*answers)
    server = TCPServer.new("127.0.0.1", 0)
    requests = []
    thread = Thread.new do
      answers.each do |answer|
        client = server.accept
        lines = []
        while (line = client.gets) && line != "\r\n" do lines << line.chomp end
        requests << lines
        answer.respond_to?(:call) ? answer.call(client) : client.write(answer)
        client.close
      rescue SystemCallError
        nil
      end
    end
    yield server.addr[1], requests
  ensure
    thread&.kill
    server&.close
  end

  def ok(body, *headers) = ["HTTP/1.1 200 OK", "Content-Length: #{body.bytesize}", *headers, "", body].join("\r\n")

  def get(url, **options) = Fetch.new(**options).call(Fetch.uri(url))

  def failed(url, **options) = assert_raises(Fetch::Failed, url) { get(url, **options) }.message

  test "a set is fetched with what its server says of its age" do
    ages = {nil => nil, "Cache-Control: public, max-age=120, must-revalidate" => 120, "Cache-Control: no-store" => 0,
            "Cache-Control: no-cache, max-age=5" => 0, "cache-control: MAX-AGE=\"7\"" => 7, "Cache-Control: max-age=-1" => nil,
            "Cache-Control: x" => nil, "Cache-Control: max-age=99999999999999999999" => nil}
    serve(*ages.keys.map { |header| ok("{}", *header) }) do |port, requests|
      ages.each_value do |age|
        fetched = get("http://127.0.0.1:#{port}/jwks?a=b")
        assert_equal ["{}", age], [fetched.body, fetched.max_age]
      end
      assert_equal "GET /jwks?a=b HTTP/1.1", requests[0][0]
      assert_includes requests[0].map(&:downcase), "host: 127.0.0.1:#{port}"
      assert_includes requests[0].map(&:downcase), "accept: application/jwk-set+json, application/json"
    end
  end

  test "any other status is a failure" do
    [201, 204, 304, 401, 404, 500, 503].each do |status|
      serve("HTTP/1.1 #{status} X\r\nContent-Length: 0\r\n\r\n") { |port| assert_match(/answers #{status}/, failed("http://127.0.0.1:#{port}/")) }
    end
  end

  test "redirects are followed within the origin, a few times" do
    serve("HTTP/1.1 302 X\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n", ok("{}")) do |port, requests|
      assert_equal "{}", get("http://127.0.0.1:#{port}/here").body
      assert_equal "GET /there HTTP/1.1", requests[1][0]
    end
    loop = "HTTP/1.1 302 X\r\nLocation: /here\r\nContent-Length: 0\r\n\r\n"
    serve(*[loop] * 9) do |port, requests|
      assert_match(/too often/, failed("http://127.0.0.1:#{port}/here"))
      assert_equal 4, requests.size
    end
  end

  test "redirects to another origin are not followed" do
    ["http://127.0.0.1:1/", "https://127.0.0.1/", "http://localhost/", "//other.example/", "file:///etc/passwd", "http://169.254.169.254/",
      "http://user@127.0.0.1:%d/", "http://[", ":::"].each do |location|
      serve(->(client) { client.write("HTTP/1.1 302 X\r\nLocation: #{location.sub("%d", client.local_address.ip_port.to_s)}\r\nContent-Length: 0\r\n\r\n") }) do |port, requests|
        assert_match(/redirects to/, failed("http://127.0.0.1:#{port}/"), location)
        assert_equal 1, requests.size
      end
    end
  end

  test "an answer that is too large is not read to its end" do
    chunks = lambda do |client|
      client.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
      100.times { client.write("x" * 100_000) }
    end
    serve(chunks) { |port| assert_match(/more than 262144 bytes/, failed("http://127.0.0.1:#{port}/")) }
    error = ->(client) { client.write("HTTP/1.1 500 X\r\nConnection: close\r\n\r\n") && 100.times { client.write("x" * 100_000) } }
    serve(error) { |port| assert_match(/more than/, failed("http://127.0.0.1:#{port}/")) }
    serve(ok("x" * 262_144)) { |port| assert_equal 262_144, get("http://127.0.0.1:#{port}/").body.bytesize }
  end

  test "a server that is not there, silent, hangs up or talks nonsense is a failure" do
    server = TCPServer.new("127.0.0.1", 0)
    port = server.addr[1]
    server.close
    assert_match(/cannot be reached/, failed("http://127.0.0.1:#{port}/"))
    ["", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n"].each do |answer|
      serve(answer) { |at| assert_match(/cannot be reached|breaks off/, failed("http://127.0.0.1:#{at}/"), answer) }
    end
    assert_match(/in time/, silent)
  end

  def silent
    with_constant(:READ_SECONDS, 0.05) { serve(->(client) { client.read }) { |port| return failed("http://127.0.0.1:#{port}/") } }
  end

  test "a server that drips is cut off" do
    drip = ->(client) { loop { client.write("x") && sleep(0.01) } }
    with_constant(:TOTAL_SECONDS, 0.1) { serve(drip) { |port| assert_match(/in time/, failed("http://127.0.0.1:#{port}/")) } }
  end

  def with_constant(name, value)
    was = Fetch.send(:const_get, name)
    set = lambda do |to|
      Fetch.send(:remove_const, name)
      Fetch.const_set(name, to)
      Fetch.send(:private_constant, name)
    end
    set.call(value)
    yield
  ensure
    set.call(was)
  end

  test "a host name that leads to a private address is refused, all its addresses counting" do
    %w[127.0.0.1 127.9.9.9 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 198.18.0.1 192.0.0.1 224.0.0.1
      240.0.0.1 255.255.255.255 ::1 :: ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 fe80::1 fe80::1%eth0 fc00::1 fd12::1 ff02::1 2002:7f00:1::
      64:ff9b::7f00:1 2001::1 nonsense].each do |address|
      [[address], ["203.0.113.9", address], [address, "203.0.113.9"]].each do |addresses|
        assert_match(/private address/, failed("https://issuer.example/jwks", resolver: ->(_) { addresses }), address)
      end
    end
    assert_match(/no address/, failed("https://issuer.example/jwks", resolver: ->(_) { [] }))
    assert_match(/no address/, failed("https://issuer.example/jwks", resolver: ->(_) { raise SocketError }))
  end

  test "public addresses are used as they were checked, in order" do
    found = ["203.0.113.9", "2606:4700::1111", "8.8.8.8", "172.32.0.1"]
    assert_equal found, Policy.addresses("issuer.example", resolver: ->(_) { found })
  end

  test "a host that is written as an address is what the operator chose" do
    never = ->(_) { flunk "no name to resolve" }
    %w[10.0.0.1 127.0.0.1 ::1 fd00::1 203.0.113.9].each { |host| assert_equal [host], Policy.addresses(host, resolver: never) }
    assert_equal ["127.0.0.1", "::1"], Policy.addresses("localhost", resolver: ->(_) { ["127.0.0.1", "::1"] })
    assert_raises(Policy::Refused) { Policy.addresses("localhost", resolver: ->(_) { ["10.0.0.1"] }) }
  end

  test "the addresses that were checked are used, and one that does not answer gives way to the next" do
    serve(ok("{}")) do |port, _|
      Policy.stub(:addresses, ["127.255.255.254", "127.0.0.1"]) { assert_equal "{}", Fetch.new.call(URI("http://issuer.invalid:#{port}/")).body }
    end
  end

  test "a certificate that nobody trusts, or for another host, is a failure" do
    key = OpenSSL::PKey::EC.generate("prime256v1")
    certificate = OpenSSL::X509::Certificate.new.tap do |made|
      made.version = 2
      made.serial = 1
      made.subject = made.issuer = OpenSSL::X509::Name.parse("/CN=127.0.0.1")
      made.public_key = key
      made.not_before = Time.now - 60
      made.not_after = Time.now + 60
      made.sign(key, "SHA256")
    end
    context = OpenSSL::SSL::SSLContext.new
    context.add_certificate(certificate, key)
    received = nil
    shake = ->(client) { (received = OpenSSL::SSL::SSLSocket.new(client, context).accept.gets) rescue nil } # standard:disable Style/RescueModifier
    tcp = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new { shake.call(tcp.accept) }
    assert_match(/cannot be reached \(OpenSSL/, failed("https://127.0.0.1:#{tcp.addr[1]}/"))
    thread.join(2)
    assert_nil received
  ensure
    tcp&.close
  end

  test "the proxy of the environment is used" do
    serve(ok("{}")) do |port, requests|
      ENV["http_proxy"] = "http://127.0.0.1:#{port}"
      # http is for this machine only, which is never behind a proxy: ask as if it were not.
      assert_equal "{}", Fetch.new(resolver: ->(_) { flunk "the proxy resolves" }).call(URI("http://issuer.example/jwks")).body
      assert_equal "GET http://issuer.example/jwks HTTP/1.1", requests[0][0]
    ensure
      ENV.delete("http_proxy")
    end
  end
end
