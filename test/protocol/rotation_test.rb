# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require "support/key_sets"
require "support/protocol_test"

# Keys that are replaced while the hub runs: Mercure draft-08, section "Token Validation".
class Protocol::RotationTest < Protocol::Test
  include KeySets

  OLD = OpenSSL::PKey::EC.generate("prime256v1")
  NEW = OpenSSL::PKey::EC.generate("prime256v1")

  def setup
    super
    @folder = Dir.mktmpdir
  end

  def teardown
    super
    FileUtils.rm_rf(@folder)
  end

  def path = File.join(@folder, "keys.json")

  # By kid.
  def replace(keys)
    sets = keys.map { |kid, key| JSON.parse(key_set(key, kid))["keys"] }
    File.write("#{path}.new", JSON.generate(keys: sets.flatten))
    File.rename("#{path}.new", path)
  end

  def start_rotating(**settings)
    replace("old" => OLD)
    start(jwks: "file:#{path}", publisher_key: :absent, subscriber_key: :absent, **settings)
  end

  def signed(role, key, kid, *topics, **claims) = token(role, *topics, key: key, alg: "ES256", header: {"kid" => kid}, **claims)

  def status(key, kid) = post({"topic" => "a"}, token: signed(:publisher, key, kid, "*")).status

  test "a file with another key is read again, and the decisions that rested on the old one are void" do
    start_rotating
    writer = signed(:publisher, OLD, "old", "*")
    2.times { assert_equal 200, post({"topic" => topic}, token: writer).status }
    2.times { assert_equal 401, status(NEW, "new") }
    replace("old" => OLD, "new" => NEW)
    eventually { status(NEW, "new") == 200 }
    assert_equal 200, post({"topic" => topic}, token: writer).status
    replace("new" => NEW)
    eventually { post({"topic" => topic}, token: writer).status == 401 }
    assert_equal 200, status(NEW, "new")
  end

  test "an open stream ends when the key of its token is gone, and no other does" do
    start_rotating
    replace("old" => OLD, "new" => NEW)
    web = server.web
    web.reload
    old = Array.new(3) { |i| subscribe({"match" => [topic, topic("b"), topic][i]}, token: signed(:subscriber, OLD, "old", "*", sub: "u#{i % 2}")) }
    keep = subscribe({"match" => topic}, token: signed(:subscriber, NEW, "new", "*"))
    anonymous = follow(topic)
    assert_equal [200] * 5, [*old, keep, anonymous].map(&:status)
    replace("new" => NEW)
    old.each { |stream| assert_raises(EOFError) { stream.next } }
    assert_equal 401, subscribe({"match" => topic}, token: signed(:subscriber, OLD, "old", "*")).status
    post({"topic" => topic, "data" => "on", "private" => "on"}, token: signed(:publisher, NEW, "new", "*"))
    post({"topic" => topic, "data" => "public"}, token: signed(:publisher, NEW, "new", "*"))
    assert_next "on", keep
    assert_next "public", anonymous
  end

  test "a stream that was given a token with another key lives by that" do
    start_rotating
    replace("old" => OLD, "new" => NEW)
    server.web.reload
    stream = subscribe({"match" => topic}, token: signed(:subscriber, OLD, "old", "*"), headers: {"hikyaku-stream" => "1"})
    other = subscribe({"match" => topic}, token: signed(:subscriber, OLD, "old", "*"))
    assert_equal 204, client.request("POST", "#{server.path}/streams/#{stream["hikyaku-stream"]}",
      headers: {"content-type" => "application/x-www-form-urlencoded"}.merge(bearer(signed(:subscriber, NEW, "new", "*"))), body: form("match" => topic)).status
    replace("new" => NEW)
    assert_raises(EOFError) { other.next }
    post({"topic" => topic, "data" => "on"}, token: signed(:publisher, NEW, "new", "*"))
    assert_next "on", stream
  end

  test "a file that cannot be used leaves the keys and the streams as they are" do
    start_rotating
    stream = subscribe({"match" => topic}, token: signed(:subscriber, OLD, "old", "*"))
    File.write(path, "{}")
    server.web.reload
    assert_equal 200, post({"topic" => topic, "data" => "on"}, token: signed(:publisher, OLD, "old", "*")).status
    assert_next "on", stream
  end

  test "a decision that was taken while its key went begins no stream" do
    start_rotating
    basis = Struct.new(:good) { def good? = good }.new(false)
    grant = Hikyaku::Hub::Grant.new(matchers: [hub.matcher("exact", topic)], basis: basis)
    assert_raises(Hikyaku::InvalidToken) { hub.subscribe(grant) }
    basis.good = true
    subscriber = hub.subscribe(grant)
    basis.good = false
    assert_equal 1, hub.expel
    hub.unsubscribe(subscriber)
  end
end
