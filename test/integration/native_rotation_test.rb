# frozen_string_literal: true

require "support/key_sets"
require "support/native_test"
require "support/scripted_server"

# The issuer's keys change, and nobody says so: the hub looks again when the set is as old as it may be, a minute at the least.
class Integration::NativeRotationTest < Integration::NativeTest
  include KeySets

  parallelize_me!

  BOOK = Integration::BOOK
  # Seconds for which a key set is fresh at the least, and in which a hub must have looked again.
  FRESH = 60
  LATEST = FRESH + 15
  private_constant :BOOK, :FRESH, :LATEST

  test "a decision that is remembered ends when its key has left the set, though only the engine was asked for it" do
    key = OpenSSL::PKey::EC.generate("prime256v1")
    set = key_set(key, "first")
    issuer = ending(ScriptedServer.new(->(peer) { peer.answer_all(200, set, "cache-control" => "max-age=#{FRESH}") }))
    hub = start_native("--jwks", issuer.url, keys: [])
    writer = token(:publisher, "*", key: key, alg: "ES256", header: {"kid" => "first"})
    began = HttpClient.now
    assert_equal 200, hub.post({topic: BOOK, data: "x"}, token: writer).status
    set.replace(key_set(OpenSSL::PKey::EC.generate("prime256v1"), "second"))
    asked = hub.metrics["asks_total"]
    statuses = []
    until statuses.last == 401 || HttpClient.now - began > LATEST
      sleep 0.5
      statuses << hub.post({topic: BOOK, data: "x"}, token: writer).status
    end
    assert_equal 401, statuses.last, "the old key still serves"
    assert_operator HttpClient.now - began, :>=, FRESH - 1, "it did not wait for the set to be stale"
    assert_equal [200], statuses[0..-2].uniq
    assert_equal 3, issuer.requests.size, "at first, when it was stale, and when it lacked the key of the refused token"
    assert_equal 2, hub.metrics["asks_total"] - asked, "only the refusal, and this question, were Ruby's"
  end
end
