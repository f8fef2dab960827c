# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/proxy/destination"

class HTTPProxyDestinationTest < Minitest::Test
  Destination = Hikyaku::HTTP::Proxy::Destination

  REACHED = %w[
    192.0.2.1 8.8.8.8 10.0.0.1 172.16.0.1 192.168.1.1 100.64.0.1 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0 223.255.255.255 100.100.100.199 168.63.129.15 192.0.0.191
    2001:db8::1 fc00::1 fd12::1 fec0::1 fe00::1 ::2:0:0 64:ff9b::8.8.8.8 2002:808:808::1 ::ffff:8.8.8.8 ::8.8.8.8 2001:0:1:2:3:4:f7f7:f7f7
  ].freeze

  # Addresses, and why they are refused.
  REFUSED = {
    "127.0.0.1" => :loopback, "127.255.255.255" => :loopback, "::1" => :loopback,
    "0.0.0.0" => :unspecified, "0.1.2.3" => :unspecified, "::" => :unspecified,
    "169.254.0.1" => :link_local, "169.254.255.255" => :link_local, "fe80::1" => :link_local, "febf::1" => :link_local, "fe80::1%eth0" => :link_local,
    "169.254.169.254" => :metadata, "100.100.100.200" => :metadata, "168.63.129.16" => :metadata, "192.0.0.192" => :metadata, "::ffff:168.63.129.16" => :metadata, "fd00:ec2::254" => :metadata, "fd20:ce::254" => :metadata,
    "224.0.0.1" => :multicast, "239.255.255.255" => :multicast, "ff02::1" => :multicast,
    "255.255.255.255" => :broadcast, "240.0.0.1" => :reserved, "255.255.255.254" => :reserved,
    "::ffff:127.0.0.1" => :loopback, "::ffff:7f00:1" => :loopback, "::ffff:169.254.169.254" => :metadata, "::ffff:0.0.0.0" => :unspecified, "::ffff:e000:1" => :multicast,
    "::ffff:0:127.0.0.1" => :loopback, "::127.0.0.1" => :loopback, "::169.254.169.254" => :metadata,
    "64:ff9b::127.0.0.1" => :loopback, "64:ff9b::a9fe:a9fe" => :metadata, "64:ff9b:1::127.0.0.1" => :loopback,
    "2002:7f00:1::" => :loopback, "2002:a9fe:a9fe::1" => :metadata, "2002:ffff:ffff::1" => :broadcast,
    "2001:0:1:2:3:4:80ff:fffe" => :loopback,
    "" => :malformed, "127.1" => :malformed, "0177.0.0.1" => :malformed, "localhost" => :malformed, "1.2.3.4.5" => :malformed, "::1::" => :malformed, "\xFF" => :malformed
  }.freeze

  # What is allowed; then the host, port and address that are asked for; then whether it is reached.
  ALLOWED = [
    ["127.0.0.0/8", "127.0.0.1", 3000, "127.0.0.1", true],
    ["127.0.0.1/8", "127.9.9.9", 80, "127.9.9.9", true],
    ["127.0.0.0/8", "localhost", 80, "127.0.0.1", true],
    ["127.0.0.0/8", "App.LocalHost.", 80, "127.0.0.1", true],
    ["127.0.0.0/8", "evil.example", 80, "127.0.0.1", false],
    ["127.0.0.0/8", "localhost.evil.example", 80, "127.0.0.1", false],
    ["127.0.0.0/8", "notlocalhost", 80, "127.0.0.1", false],
    ["127.0.0.0/8", "2130706433", 80, "127.0.0.1", false],
    ["127.0.0.0/8", "[::ffff:127.0.0.1]", 80, "::ffff:127.0.0.1", true],
    ["127.0.0.0/8", "[::1]", 80, "::1", false],
    ["::1", "[::1]", 80, "::1", true],
    ["[::1]", "::1", 80, "::1", true],
    ["[::1]:3000", "[::1]", 3000, "::1", true],
    ["[::1]:3000", "[::1]", 3001, "::1", false],
    ["127.0.0.1:3000", "127.0.0.1", 3000, "127.0.0.1", true],
    ["127.0.0.1:3000", "127.0.0.1", 3001, "127.0.0.1", false],
    ["127.0.0.1:3000", "127.0.0.2", 3000, "127.0.0.2", false],
    ["127.0.0.1:3000", "localhost", 3000, "127.0.0.1", true],
    ["app.test", "App.Test.", 80, "127.0.0.1", true],
    ["app.test:3000", "app.test", 3000, "127.0.0.1", true],
    ["app.test:3000", "app.test", 3001, "127.0.0.1", false],
    ["app.test", "app.test", 80, "169.254.169.254", true],
    ["app.test", "www.app.test", 80, "127.0.0.1", false],
    ["169.254.0.0/16", "169.254.1.2", 80, "169.254.1.2", true],
    ["169.254.0.0/16", "localhost", 80, "169.254.1.2", false],
    ["169.254.0.0/16", "169.254.169.254", 80, "169.254.169.254", true],
    ["168.63.129.16", "168.63.129.16", 80, "168.63.129.16", true],
    ["168.63.129.16", "evil.example", 80, "168.63.129.16", false],
    ["192.0.0.0/24", "192.0.0.192", 80, "192.0.0.192", true],
    ["168.63.129.16", "192.0.0.192", 80, "192.0.0.192", false],
    ["metadata.google.internal", "metadata.google.internal", 80, "169.254.169.254", true],
    ["169.254.169.254", "metadata.google.internal", 80, "169.254.169.254", false],
    ["example.com", "example.com", 25, "192.0.2.1", false],
    ["example.com:25", "example.com", 25, "192.0.2.1", true],
    ["192.0.2.1:25", "192.0.2.1", 25, "192.0.2.1", true],
    ["192.0.2.0/24", "192.0.2.1", 25, "192.0.2.1", false]
  ].freeze
  private_constant :Destination, :REACHED, :REFUSED, :ALLOWED

  test "public and private addresses are reached, by name or as they are" do
    REACHED.each do |address|
      assert_equal [address], Destination.new.check("example.com", 80, [address])
      assert_equal [address], Destination.new.check(address, 80, [address])
    end
  end

  test "this machine, the link, clouds' secrets, and what is no one machine are refused, in any dress" do
    REFUSED.each do |address, reason|
      ["example.com", address].each { |host| assert_equal reason, refused { Destination.new.check(host, 80, [address]) }.reason, address.inspect }
    end
  end

  test "a range allows what is asked for as an address or as localhost, a name what is asked for by it" do
    ALLOWED.each do |allow, host, port, address, reached|
      destination = Destination.new(allow: [allow])
      what = "#{allow} for #{host}:#{port} at #{address}"
      if reached
        assert_equal [address], destination.check(host, port, [address]), what
      else
        assert_raises(Hikyaku::HTTP::Proxy::StatusError, what) { destination.check(host, port, [address]) }
      end
    end
  end

  test "of several addresses those are left that may be connected to" do
    assert_equal %w[192.0.2.1 2001:db8::1], Destination.new.check("example.com", 80, %w[127.0.0.1 192.0.2.1 fe80::1 2001:db8::1 ::1])
    error = refused { Destination.new.check("example.com", 80, %w[127.0.0.1 fe80::1]) }
    assert_equal [:loopback, 'the proxy does not connect to "example.com": it leads to this machine; if you trust it, allow "example.com:80"'], [error.reason, error.message]
    assert_kind_of Hikyaku::Error, error
    assert_equal :unresolved, refused { Destination.new.check("example.com", 80, []) }.reason
  end

  test "addresses may be those of a resolver" do
    addresses = [Addrinfo.tcp("192.0.2.1", 80), Addrinfo.tcp("127.0.0.1", 80)]
    assert_equal addresses.take(1), Destination.new.check("example.com", 80, addresses)
  end

  test "names of services that tell secrets are refused wherever they lead" do
    %w[metadata.google.internal Metadata.Google.Internal. metadata.goog].each do |host|
      assert_equal :metadata, refused { Destination.new.check(host, 80, %w[192.0.2.1]) }.reason
    end
  end

  test "ports that browsers refuse are refused" do
    [1, 22, 25, 53, 110, 143, 587, 2049, 6000, 6667, 10_080].each do |port|
      assert_equal :port, refused { Destination.new.check("example.com", port, %w[192.0.2.1]) }.reason, port
    end
    [0, -1, 65_536, nil, "80"].each { |port| assert_equal :no_port, refused { Destination.new.check("example.com", port, %w[192.0.2.1]) }.reason }
    [2, 80, 443, 3000, 6001, 8080, 65_535].each { |port| assert_equal %w[192.0.2.1], Destination.new.check("example.com", port, %w[192.0.2.1]) }
  end

  test "the proxy does not ask itself, whatever is allowed" do
    everything = ["0.0.0.0/0", "::/0", "proxy.test"]
    [
      ["127.0.0.1", %w[127.0.0.1 ::ffff:127.0.0.1 0.0.0.0 :: 64:ff9b::7f00:1], %w[127.0.0.2 192.0.2.1]],
      ["0.0.0.0", %w[127.0.0.1 127.0.0.2 0.0.0.0 ::1 ::], %w[192.0.2.1]],
      ["::", %w[127.0.0.1 ::1 ::], %w[192.0.2.1]],
      ["192.168.1.5", %w[192.168.1.5 ::ffff:192.168.1.5], %w[192.168.1.6 127.0.0.1]]
    ].each do |listening, itself, others|
      destination = Destination.new(allow: everything, own: [[listening, 8080]])
      itself.each do |address|
        ["proxy.test", address].each { |host| assert_equal :own, refused { destination.check(host, 8080, [address]) }.reason, "#{address} of #{listening}" }
        assert_equal [address], destination.check(address, 8081, [address])
      end
      others.each { |address| assert_equal [address], destination.check(address, 8080, [address]) }
    end
  end

  test "a proxy that listens at all addresses does not ask itself at any that the machine has then" do
    machine = %w[127.0.0.1 192.168.1.5 10.1.2.3 ::1 2001:db8::5 fe80::5%eth0]
    %w[0.0.0.0 :: ::ffff:0.0.0.0].each do |listening|
      destination = Destination.new(allow: ["0.0.0.0/0", "::/0", "proxy.test"], own: [[listening, 8080]], machine: -> { machine })
      %w[192.168.1.5 10.1.2.3 2001:db8::5 fe80::5 fe80::5%eth1 ::ffff:192.168.1.5 ::ffff:c0a8:105 64:ff9b::10.1.2.3 2002:c0a8:105::].each do |address|
        ["proxy.test", address].each { |host| assert_equal :own, refused { destination.check(host, 8080, [address]) }.reason, "#{address} of #{listening}" }
        assert_equal [address], destination.check(address, 8081, [address])
      end
      assert_equal %w[192.168.1.6], destination.check("192.168.1.6", 8080, %w[192.168.1.5 192.168.1.6])
      machine << "192.168.1.6"
      assert_equal :own, refused { destination.check("192.168.1.6", 8080, %w[192.168.1.6]) }.reason
      machine.pop
    end
  end

  test "a proxy that listens at an address in the dress of IPv6 knows it without" do
    destination = Destination.new(allow: ["0.0.0.0/0", "::/0"], own: [["::ffff:127.0.0.1", 8080], ["fe80::1%eth0", 8080]])
    %w[127.0.0.1 ::ffff:7f00:1 0.0.0.0 fe80::1 fe80::1%eth0].each do |address|
      assert_equal :own, refused { destination.check(address, 8080, [address]) }.reason, address
    end
  end

  test "what cannot be allowed is said when it is tried" do
    ["", "a b", "127.0.0.1/33", "http://a", "[::1", "a:b", "[a]:1", "127.0.0.0/8:80"].each do |text|
      error = assert_raises(Hikyaku::ConfigError, text) { Destination.new(allow: [text]) }
      assert_includes error.message, text.inspect
    end
  end

  test "a host that is long or strange is shown short" do
    error = refused { Destination.new.check("\xFF\r\n#{"a" * 1000}", 80, %w[127.0.0.1]) }
    assert_operator error.message.size, :<, 500
    refute_match(/[\r\n]/, error.message)
  end

  private

  def refused(&block) = assert_raises(Hikyaku::HTTP::Proxy::StatusError, &block)
end
