# frozen_string_literal: true

require "support/protocol_test"

# Mercure draft-08, section "Publication".
class Protocol::PublicationTest < Protocol::Test
  test "a publish is answered with exactly 200, text/plain in UTF-8, and the id alone (Publication)" do
    stream = follow(topic)
    response = post("topic" => topic, "data" => "hello")
    assert_equal 200, response.status
    assert_equal "text/plain; charset=utf-8", response["content-type"]
    assert_equal response.body.bytesize.to_s, response["content-length"]
    event = stream.next
    assert_equal [response.body, "message", "hello"], event.to_a
  end

  test "the hub makes an id that is a fragment when none is given (Publication, id)" do
    ids = Array.new(20) { publish(topic, "x") }
    assert_equal ids.uniq, ids
    ids.each { |id| assert_match(/\A#[A-Za-z0-9_-]+\z/, id) }
  end

  test "an id that the publisher chose is the event's (Publication, id)" do
    ["urn:uuid:5e94c686-2c0b-4f9b-958c-92ccc3bbb4eb", "did:example:1", "7", "été 木 🎈", "a\"b\\c", "x#"].each do |id|
      stream = follow(topic)
      assert_equal id, publish(topic, "x", id: id)
      assert_equal id, stream.next.id
      stream.close
    end
  end

  test "an empty id is as good as none (Publication, id)" do
    assert_match(/\A#/, publish(topic, "x", id: ""))
  end

  test "a request without a topic is refused (Publication, topic)" do
    ["", "data=x", "topics=x", "Topic=x", "data=topic"].each { |body| assert_match(/topic/, assert_problem(400, post(body), body)) }
  end

  test "subscribers of the canonical and of any alternate topic get the update, once (Publication, topic)" do
    canonical, other, third = topic("1"), topic("2"), topic("3")
    streams = [follow(canonical), follow(other), follow(third), follow(canonical, other, third)]
    publish([canonical, other, third], "one")
    publish(canonical, "canonical")
    publish(third, "third")
    assert_equal [%w[one canonical], %w[one], %w[one third], %w[one canonical third]],
      streams.zip([canonical, other, third, canonical]).map { |stream, topic| received(stream, topic) }
  end

  test "the same topic twice is no two updates (Publication, topic)" do
    stream = follow(topic)
    publish([topic, topic], "once")
    assert_equal ["once"], received(stream, topic)
  end

  test "a topic need not be a URL (Publication, topic)" do
    ["bar #{topic}", "urn:isbn:#{rand(10**10)}", "木/#{topic}", "a=b&c;d+e%20f #{topic}", "http://[#{topic}", " #{topic} "].each do |name|
      stream = follow(name)
      publish(name, "x")
      assert_next "x", stream, name
      stream.close
    end
  end

  test "data is optional and may be empty: the event has one empty line of it (Publication, data)" do
    stream = follow(topic)
    assert_equal 200, post("topic" => topic).status
    publish(topic, "")
    publish(topic, "last")
    assert_equal ["", "", "last"], stream.take(3).map(&:data)
  end

  test "the type becomes the event's, an empty one is the browser's message (Publication, type)" do
    stream = follow(topic)
    publish(topic, "a", type: "book.changed")
    publish(topic, "b", type: "")
    publish(topic, "c", type: "événement: 木")
    assert_equal [["book.changed", "a"], ["message", "b"], ["événement: 木", "c"]], stream.take(3).map { |event| [event.type, event.data] }
  end

  test "the reserved type mercure is refused, nothing like it (Publication, type; Reserved Hub Namespace)" do
    assert_match(/mercure/, assert_problem(400, post("topic" => topic, "type" => "mercure")))
    %w[Mercure mercure2 mercure.x].each { |type| assert_equal 200, post("topic" => topic, "type" => type).status, type }
  end

  test "retry must be ASCII digits alone (Publication, retry)" do
    ["-1", "+1", "1.5", "1e3", "0x10", " 1", "1 ", "1\n", "a", "١٢", "1_000", "1,000", "٣", "NaN"].each do |value|
      assert_problem 400, post("topic" => topic, "retry" => value), value.inspect
    end
  end

  test "retry becomes the stream's reconnection time, 0 too (Publication, retry)" do
    stream = follow(topic)
    {"0" => 0, "1500" => 1500, "000250" => 250}.each do |sent, told|
      publish(topic, sent, retry: sent)
      assert_next sent, stream
      assert_equal told, stream.retry_after
    end
    assert_includes stream.bytes, "retry: 0\n"
  end

  test "an empty retry is as good as none, like an empty id and type (Publication, retry)" do
    stream = follow(topic)
    publish(topic, "x", retry: "")
    assert_next "x", stream
    assert_nil stream.retry_after
  end

  test "ids with the hub's own forms are refused (Publication, id)" do
    ["#1", "#", "earliest"].each { |id| assert_match(/\bid\b/, assert_problem(400, post("topic" => topic, "id" => id), id)) }
    %w[Earliest earliest2].each { |id| assert_equal id, publish(topic, "x", id: id) }
  end

  test "fields that the hub does not know are ignored (Publication)" do
    stream = follow(topic)
    post("topic" => topic, "data" => "x", "Data" => "y", "foo" => "bar", "match" => "x", "topic[]" => "#{topic}2", "" => "z", "types" => "t")
    assert_equal ["message", "x"], stream.next.to_a.drop(1)
  end

  test "of a field that has one value the first counts (Publication)" do
    stream = follow(topic)
    post([["topic", topic], ["data", "first"], ["data", "second"], ["type", "one"], ["type", "two"], ["id", id = "urn:#{topic}"], ["id", "y"]])
    assert_equal [id, "one", "first"], stream.next.to_a
  end

  test "an update is private by the field's presence, whatever its value (Publication, private)" do
    reader = subscriber(topic)
    ["private=on", "private=", "private", "private=0", "private=false", "private=off&private=no", "priv%61te=1", "private=%FF"].each do |field|
      stranger, friend = follow(topic), follow(topic, token: reader)
      assert_equal 200, post("topic=#{URI.encode_www_form_component(topic)}&data=secret&#{field}").status, field
      publish(topic, "public")
      assert_next "public", stranger, field
      assert_equal %w[secret public], friend.take(2).map(&:data), field
      [stranger, friend].each(&:close)
    end
    stranger = follow(topic)
    post("topic" => topic, "data" => "open", "Private" => "on")
    assert_next "open", stranger
  end

  test "the body must be a form (Publication)" do
    body = form("topic" => topic, "data" => "x")
    ["application/json", "text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencodedx", "", "form"].each do |type|
      assert_problem 400, post(body, headers: {"content-type" => type}), type.inspect
    end
    assert_problem 400, client.request("POST", server.path, headers: bearer(publisher), body: body)
    ["application/x-www-form-urlencoded; charset=UTF-8", "Application/X-WWW-Form-URLEncoded", "application/x-www-form-urlencoded ;charset=utf-8"].each do |type|
      assert_equal 200, post(body, headers: {"content-type" => type}).status, type
    end
  end

  test "a body may come in chunks" do
    stream = follow(topic)
    parts = form("topic" => topic, "data" => "in pieces").scan(/.{1,7}/)
    body = parts.map { |part| "#{part.bytesize.to_s(16)}\r\n#{part}\r\n" }.join + "0\r\n\r\n"
    response = client.request("POST", server.path, headers: bearer(publisher).merge("content-type" => "application/x-www-form-urlencoded", "transfer-encoding" => "chunked"), body: body)
    assert_equal 200, response.status, response.body
    assert_next "in pieces", stream
  end

  test "what is in the query component is no part of an update (Publication)" do
    response = client.request("POST", "#{server.path}?topic=#{topic}", headers: bearer(publisher).merge("content-type" => "application/x-www-form-urlencoded"), body: "data=x")
    assert_problem 400, response
  end

  test "plus signs, percent escapes and semicolons are read as the URL standard has it (Publication)" do
    stream = follow("#{topic} x;y")
    assert_equal 200, post("topic=#{URI.encode_www_form_component(topic)}+x;y&&data=a+b%2Bc%20d;e=f&=&").status
    assert_next "a b+c d;e=f", stream
  end

  test "a stray percent sign stays as it is (URL standard, percent-decode)" do
    stream = follow(topic)
    post("topic=#{URI.encode_www_form_component(topic)}&data=100%+%zz+%4+%")
    assert_next "100% %zz %4 %", stream
  end

  test "publishing needs a token even where subscribing needs none (Publication; Authorization)" do
    assert_challenge 401, nil, post({"topic" => topic}, token: nil)
  end

  test "the answer says that a publish can be repeated, and may not be cached" do
    response = post("topic" => topic)
    assert_match(/\A\w{16}\z/, response["hikyaku-idempotency"])
    assert_equal "no-store", response["cache-control"]
  end
end
