# frozen_string_literal: true

require "test_helper"
require_relative "tokens"

# Keys at a URL: Mercure draft-08, section "Token Validation" (the authorization server's JWK Set); RFC 7517.
class RemoteKeysTest < Minitest::Test
  include Tokens

  Fetch = Hikyaku::Web::Authorization::KeyFetch
  URL = "https://issuer.example.com/jwks"

  # Stands for the issuer's server: answers with what it was told, counts, and can be held.
  class Server
    attr_accessor :set, :max_age, :hold
    attr_reader :count

    def initialize(set, max_age: nil)
      @set = set
      @max_age = max_age
      @count = 0
      @mutex = Mutex.new
    end

    def call(_uri)
      @mutex.synchronize { @count += 1 }
      @hold&.pop
      raise Fetch::Failed, @set if @set.is_a?(Symbol)
      raise @set if @set.is_a?(Exception)
      Fetch::Fetched.new(@set, @max_age)
    end
  end

  def setup
    @now = NOW
    @new = OpenSSL::PKey::EC.generate("prime256v1")
    @old_set = jwks(jwk(P256, kid: "old"))
    @new_set = jwks(jwk(@new, kid: "new"))
    @server = Server.new(@old_set)
    @logger = Tokens::Logger.new
  end

  def hub(url: URL, **settings)
    @hub ||= authorization(issuer(jwks: url, **settings), http: @server, clock: -> { @now }, logger: @logger)
  end

  # Made once: an EC signature is another one every time.
  def old = @old ||= token(P256, alg: "ES256", header: {"kid" => "old"}, exp: NOW + 1_000_000)

  def fresh(**claims) = token(@new, alg: "ES256", header: {"kid" => "new"}, exp: NOW + 1_000_000, **claims)

  def valid?(token, role = :publisher)
    hub.access(token, role) && true
  rescue Hikyaku::InvalidToken
    false
  end

  # Refreshes in the background end soon; nothing tells when.
  def eventually(deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60)
    until yield
      flunk "it did not happen" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.002
    end
  end

  test "the set is fetched when a token needs it, and once for both roles" do
    hub
    assert_equal 0, @server.count
    assert valid?(old)
    assert valid?(old, :subscriber)
    assert valid?(old)
    assert_equal 1, @server.count
  end

  test "many requests at once make one fetch" do
    @server.hold = Queue.new
    hub
    threads = Array.new(5) { |n| Thread.new { valid?(token(P256, alg: "ES256", sub: "user-#{n}")) } }
    eventually { threads.all? { |thread| thread.status == "sleep" } }
    @server.hold << :go
    assert_equal [true] * 5, threads.map(&:value)
    assert_equal 1, @server.count
  end

  test "a stale set is refreshed in the background, and serves until the new one is there" do
    assert valid?(old)
    @now += 599
    assert valid?(old)
    assert_equal 1, @server.count
    @server.set = @new_set
    @server.hold = Queue.new
    @now += 1
    assert valid?(old)
    assert valid?(old), "the request does not wait"
    eventually { @server.count == 2 }
    @server.hold << :go
    assert valid?(fresh)
    assert_equal 2, @server.count
    refute valid?(old)
  end

  test "the server's max-age counts, within bounds" do
    {300 => 300, 5 => 60, 0 => 60, 10_000_000 => 86_400}.each do |said, meant|
      @hub = nil
      @server = Server.new(@old_set, max_age: said)
      assert valid?(old)
      @now += meant - 1
      valid?(old)
      assert_equal 1, @server.count, said
      @now += 1
      valid?(old)
      eventually { @server.count == 2 }
    end
  end

  test "a remembered token is forgotten when its key leaves the set" do
    assert valid?(old)
    assert valid?(old, :subscriber)
    @server.set = @new_set
    @now += 600
    valid?(old)
    eventually { !valid?(old) }
    refute valid?(old, :subscriber)
  end

  test "a remembered token is forgotten when another key takes the place of its own" do
    assert valid?(old)
    @server.set = jwks(jwk(@new, kid: "old"))
    @now += 600
    valid?(old)
    eventually { !valid?(old) }
  end

  test "one fetch at a time, however long it takes" do
    assert valid?(old)
    @server.hold = Queue.new
    3.times do
      @now += 600
      assert valid?(old)
    end
    eventually { @server.count == 2 }
    sleep 0.01
    assert_equal 2, @server.count
    @server.hold << :go
  end

  test "an unchanged set forgets nothing" do
    first = hub.access(old, :publisher)
    @now += 600
    hub.access(old, :publisher)
    eventually { @server.count == 2 }
    sleep 0.01
    assert_same first, hub.access(old, :publisher)
  end

  # Key rotation: the issuer signs with a key that the hub has not seen.
  test "an unknown kid makes the hub look again at once, also a moment after the first look" do
    assert valid?(old)
    @server.set = @new_set
    assert valid?(fresh)
    assert_equal 2, @server.count
  end

  test "unknown kids make the hub look three times, a second apart, then every 30 seconds" do
    assert valid?(old)
    flood = ->(name) { 20.times { |n| refute valid?(token(P256, alg: "ES256", header: {"kid" => "#{name}-#{n}"})) } }
    counts = [0, 0.5, 1.5, 3, 10, 20, 34, 40, 64, 65].map.with_index do |seconds, i|
      @now += seconds - (@passed || 0)
      @passed = seconds
      flood.call("none-#{i}")
      @server.count
    end
    assert_equal [2, 2, 3, 4, 4, 4, 5, 5, 6, 6], counts
  end

  test "a wrong signature, a known kid and an unknown issuer make nobody look" do
    assert valid?(old)
    @now += 31
    refute valid?(token(@new, alg: "ES256", header: {"kid" => "old"}))
    refute valid?(token(@new, alg: "ES256"))
    refute valid?(token(@new, alg: "ES256", header: {"kid" => "x"}, iss: "https://other.example"))
    assert_equal 1, @server.count
  end

  test "the last good set serves when a refresh fails, whatever comes" do
    assert valid?(old)
    [:down, "", "<html>", "{}", "{\"keys\":[]}", jwks({"kty" => "oct", "k" => encode("s" * 32)}), IOError.new("x"), NoMethodError.new("x")].each do |answer|
      count = @server.count
      @server.set = answer
      @now += 600
      assert valid?(old), answer.inspect
      eventually { @server.count == count + 1 && @logger.lines.size == count }
      assert valid?(old), answer.inspect
      assert_match(/jwks of issuer .*issuer.example.com cannot be used.*last good one still serves/, @logger.lines.last)
    end
    @server.set = @new_set
    @now += 600
    valid?(old)
    eventually { valid?(fresh) }
  end

  test "until the set was ever reached the fault is said not to be the token's" do
    @server.set = :down
    error = assert_raises(Hikyaku::Web::Authorization::KeysUnavailable) { hub.access(old, :publisher) }
    assert_kind_of Hikyaku::InvalidToken, error
    refute valid?(old)
    assert_equal 1, @server.count, "no attempt for each request"
    @server.set = @old_set
    @now += 3
    assert valid?(old)
  end

  test "who waits for a set does not wait for ever" do
    Hikyaku::Web::Authorization::RemoteKeys.send(:remove_const, :WAIT_SECONDS)
    Hikyaku::Web::Authorization::RemoteKeys.const_set(:WAIT_SECONDS, 0.05)
    @server.hold = Queue.new
    assert_raises(Hikyaku::Web::Authorization::KeysUnavailable) { hub.access(old, :publisher) }
    @server.hold << :go
    eventually { valid?(old) }
  ensure
    Hikyaku::Web::Authorization::RemoteKeys.send(:remove_const, :WAIT_SECONDS)
    Hikyaku::Web::Authorization::RemoteKeys.const_set(:WAIT_SECONDS, 5)
    Hikyaku::Web::Authorization::RemoteKeys.send(:private_constant, :WAIT_SECONDS)
  end

  test "a clock that is set back does not stop refreshes" do
    assert valid?(old)
    @now -= 100_000
    valid?(old)
    eventually { @server.count == 2 }
  end

  # A published secret is no secret; a public key must not become one.
  test "secrets in a set at a URL are skipped" do
    secret = "s" * 32
    @server.set = jwks({"kty" => "oct", "k" => encode(secret), "kid" => "s"}, jwk(P256, kid: "old"))
    assert valid?(old)
    refute valid?(token(secret, header: {"kid" => "s"}))
    refute valid?(token(secret))
  end

  test "the allowlist holds for keys at a URL" do
    hub(alg: "ES384")
    refute valid?(old)
    @hub = nil
    hub(alg: "ES256 ES384")
    assert valid?(old)
  end

  test "a process that was forked fetches for itself" do
    skip "no fork here" unless Process.respond_to?(:fork)
    @server.hold = Queue.new
    hub
    waiting = Thread.new { valid?(old) }
    eventually { waiting.status == "sleep" && @server.count == 1 }
    read, write = IO.pipe
    child = fork do
      @server.hold = nil
      @now += 3
      write.write(valid?(old).inspect)
      exit!(0)
    end
    Process.wait(child)
    write.close
    assert_equal "true", read.read
    @server.hold << :go
    assert waiting.value
  end
end
