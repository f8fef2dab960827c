# frozen_string_literal: true

require "support/key_sets"
require "support/native_test"
require "support/scripted_server"

# What ends a decision that the engine in C remembers: its own end, revocation, new keys; also one that is just being taken.
class Integration::NativeRevocationTest < Integration::NativeTest
  include KeySets

  BOOK = Integration::BOOK
  ROUNDS = 40
  # Seconds: the engine looks at the clock once in a turn of its loop.
  TURN = 0.1

  test "the end of a token ends what was decided about it at once, for publishing and for subscribing, and the streams with it" do
    hub = start_native
    ends = Time.now.to_i + 4
    writer, reader = token(:publisher, BOOK, exp: ends), token(:subscriber, BOOK, exp: ends)
    stream = follow(hub, BOOK, token: reader)
    outcomes = %w[publish subscribe].to_h { |kind| [kind, []] }
    until Time.now.to_f > ends + 0.5
      outcomes["publish"] << timed { hub.post({topic: BOOK, data: "x"}, token: writer).status }
      outcomes["subscribe"] << timed { hub.subscribe({match: BOOK}, token: reader).then { |answer| answer.status.tap { answer.close if answer.is_a?(EventStream) } } }
      sleep 0.005
    end
    outcomes.each do |kind, answers|
      answers.each do |from, status, to|
        assert_equal 200, status, "#{kind}, refused #{ends - to} s before its end" if to < ends
        assert_equal 401, status, "#{kind}, served #{from - ends} s behind its end" if from >= ends + TURN
      end
      assert_equal [200, 401], answers.map { |_, status, _| status }.uniq, kind
    end
    refute_empty stream.rest
    assert_predicate stream, :ended?
    served = outcomes.values.sum { |answers| answers.count { |_, status, _| status == 200 } }
    assert_operator hub.metrics["grant_hits_total"], :>=, served - 2, "the first of each was decided by Ruby"
  end

  test "revocation ends what was decided about a subject, and the streams with it; newer tokens and other subjects go on" do
    hub = start_native
    old = ->(role, subject) { token(role, "*", sub: subject, iat: Time.now.to_i - 60) }
    writers, readers = %i[publisher subscriber].map { |role| %w[ann bob].to_h { |subject| [subject, old.call(role, subject)] } }
    streams = readers.transform_values { |reader| Array.new(3) { follow(hub, BOOK, token: reader) } }
    3.times { writers.each_value { |writer| assert_equal 200, hub.post({topic: BOOK, data: "x"}, token: writer).status } }
    assert_includes hikyaku("disconnect", "--hub", hub.url, "--token", hub.publisher, "--revoke", "ann"), "3 streams closed"
    streams["ann"].each { |stream| assert_equal %w[x] * 6, stream.rest.map(&:data) }
    2.times do
      assert_refused 401, hub.post({topic: BOOK, data: "x"}, token: writers["ann"])
      assert_refused 401, hub.subscribe({match: BOOK}, token: readers["ann"])
      assert_equal 200, hub.post({topic: BOOK, data: "y"}, token: writers["bob"]).status
    end
    streams["bob"].each { |stream| assert_equal %w[x x x x x x y y], stream.take(8).map(&:data) }
    fresh = token(:subscriber, "*", sub: "ann", iat: Time.now.to_f)
    follow(hub, BOOK, token: fresh)
  end

  # Each round: clients whose every request needs a decision of its own, and one revocation. Whatever is asked behind its answer is
  # refused, also what was being decided while it came.
  test "revocation ends a decision that is just being taken: no publish and no stream outlives it, however they race" do
    hub = start_native("--threads", "16", "--max-connections-per-address", "10000")
    ROUNDS.times do |round|
      subject = "subject-#{round}"
      old = {sub: subject, iat: Time.now.to_i - 60}
      writer, reader = token(:publisher, "*", **old), token(:subscriber, "*", **old)
      revoked = false
      clients = Array.new(12) { |client| Thread.new { race(hub, client.even? ? [:publish, writer] : [:subscribe, reader], client) { revoked } } }
      sleep 0.005 + rand * 0.02
      response = hub.client.request("DELETE", "#{PATH}/subscribers/#{subject}?revoke=1", headers: hub.bearer(hub.publisher))
      revoked = true
      assert_equal 200, response.status, response.body
      clients.each do |client|
        streams, again = client.value
        assert_equal [401], again.uniq, "round #{round}: served behind the revocation"
        streams.each { |stream| ended?(stream) || flunk("round #{round}: a stream outlives the revocation") }
      end
    end
    eventually("no subscriber") { hub.metrics["subscribers"].zero? }
  end

  test "a new key set ends what was decided by the old one, as soon as it is known" do
    keys = Array.new(2) { OpenSSL::PKey::EC.generate("prime256v1") }
    set = key_set(keys.first, "first")
    issuer = ending(ScriptedServer.new(->(peer) { peer.answer_all(200, set, "content-type" => "application/jwk-set+json") }))
    hub = start_native("--jwks", issuer.url, keys: [])
    tokens = keys.zip(%w[first second]).map { |key, kid| %i[publisher subscriber].to_h { |role| [role, token(role, "*", key: key, alg: "ES256", header: {"kid" => kid})] } }
    3.times { assert_equal [200, 200], use(hub, tokens.first) }
    assert_equal [401, 401], use(hub, tokens.last)
    set.replace(key_set(keys.last, "second"))
    sleep 1.1 # looks for unknown keys are a second apart
    assert_equal [200, 200], use(hub, tokens.last), "the new set is not fetched"
    2.times { assert_equal [401, 401], use(hub, tokens.first), "the old key still serves" }
    assert_equal [200, 200], use(hub, tokens.last)
    assert_operator hub.metrics["grant_hits_total"], :>=, 5
  end

  private

  # @return [Array] when it began, the value, when it was there; seconds since 1970
  def timed
    from = Time.now.to_f
    value = yield
    [from, value, Time.now.to_f]
  end

  # @return [String] what the command prints
  def hikyaku(*arguments)
    client = run_client(*Integration::HIKYAKU, *arguments)
    assert_predicate client.status, :success?, client.errors
    client.output
  end

  # Asks for something new each time, until the block says that it is enough; and then for the last things again.
  #
  # @return [Array(Array<EventStream>, Array<Integer>)] the streams that have begun, and the statuses of what was asked again
  def race(hub, (kind, token), client)
    streams = []
    number = 0
    ask = lambda do |value|
      next hub.post({topic: BOOK, data: "x"}, token: token, headers: {"host" => "#{value}.example.com"}).status if kind == :publish
      answer = hub.subscribe({match: "#{BOOK}/#{value}"}, token: token)
      streams << answer if answer.is_a?(EventStream)
      answer.status
    end
    ask.call("#{client}-#{number += 1}") until yield
    first = [number - 5, 1].max # who came too late to ask for anything asks for one thing now
    [streams, (first..[number, first].max).map { |again| ask.call("#{client}-#{again}") }]
  end

  def ended?(stream)
    stream.rest
    stream.ended?
  rescue HttpClient::TooLate
    false
  ensure
    stream.close
  end

  # @return [Array<Integer>] statuses
  def use(hub, tokens)
    stream = hub.subscribe({match: BOOK}, token: tokens[:subscriber])
    stream.close if stream.is_a?(EventStream)
    [hub.post({topic: BOOK, data: "x"}, token: tokens[:publisher]).status, stream.status]
  end
end
