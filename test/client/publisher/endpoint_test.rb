# frozen_string_literal: true

require "test_helper"
require "hikyaku/client/publisher/endpoint"

class PublisherEndpointTest < Minitest::Test
  def endpoint(target) = Hikyaku::Publisher::Endpoint.new(target, open_timeout: 1, read_timeout: 2, write_timeout: 3)

  test "targets and what they stand for" do
    {
      "https://hub.example.com" => [nil, "hub.example.com", "/.well-known/mercure", "https://hub.example.com/.well-known/mercure"],
      "https://hub.example.com/" => [nil, "hub.example.com", "/", "https://hub.example.com/"],
      "http://hub.example.com:3030/a/b?c=d#e" => [nil, "hub.example.com:3030", "/a/b?c=d", "http://hub.example.com:3030/a/b"],
      "http://[::1]:3030/x" => [nil, "[::1]:3030", "/x", "http://[::1]:3030/x"],
      "HTTPS://Hub.Example.com:443/x" => [nil, "Hub.Example.com", "/x", "https://Hub.Example.com/x"],
      "unix:/run/h.sock" => ["/run/h.sock", "localhost", "/.well-known/mercure", "unix:/run/h.sock:/.well-known/mercure"],
      "unix:///run/h.sock" => ["/run/h.sock", "localhost", "/.well-known/mercure", "unix:/run/h.sock:/.well-known/mercure"],
      "unix:tmp/h.sock:/" => ["tmp/h.sock", "localhost", "/", "unix:tmp/h.sock:/"],
      "unix:/run/h.sock:/a?b=c" => ["/run/h.sock", "localhost", "/a?b=c", "unix:/run/h.sock:/a"]
    }.each do |target, expected|
      found = endpoint(target)
      assert_equal expected, [found.unix_path, found.host, found.request_target, found.to_s], target
    end
  end

  test "a connection has the timeouts, never repeats by itself, and verifies" do
    connection = endpoint("https://hub.example.com/").connection
    assert_equal [1, 2, 3, 0], [connection.open_timeout, connection.read_timeout, connection.write_timeout, connection.max_retries]
    assert_predicate connection, :use_ssl?
    assert_equal OpenSSL::SSL::VERIFY_PEER, connection.verify_mode
    refute_predicate endpoint("http://hub.example.com/").connection, :use_ssl?
  end

  test "redirects are resolved, and know whether they lead away" do
    {
      ["https://h.example/a/b", "c?d"] => ["https://h.example/a/c", true, nil],
      ["https://h.example/a", "/c#x"] => ["https://h.example/c", true, nil],
      ["https://h.example/a", "//other.example/c"] => ["https://other.example/c", false, nil],
      ["https://h.example/a", "https://h.example:444/c"] => ["https://h.example:444/c", false, nil],
      ["https://h.example/a", "http://h.example/c"] => ["http://h.example/c", false, nil],
      ["unix:/s:/a", "/c"] => ["unix:/s:/c", true, "/s"],
      ["unix:/s:/a", "http://other.example/c"] => ["http://other.example/c", false, nil]
    }.each do |(from, location), (to, same, socket)|
      origin = endpoint(from)
      found = origin.redirected(location)
      assert_equal [to, same, socket], [found.to_s, found.same_origin?(origin), found.unix_path], location
    end
    origin = endpoint("https://h.example/")
    ["ftp://h.example/", "http://exa mple/", "https://user:pw@h.example/", "javascript:x", "unix:/run/x"].each do |location|
      assert_raises(Hikyaku::ConfigError, location) { origin.redirected(location) }
    end
    assert_equal "https://h.example/", origin.to_s
  end
end
