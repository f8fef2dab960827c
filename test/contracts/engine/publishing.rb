# frozen_string_literal: true

# What is published, and who receives it.
EngineContract.tests do
  test "an update reaches whoever subscribes to its topic, and nobody else" do
    reader, other = subscribe(exact("/a")), subscribe(exact("/b"))
    publish("/a", "one")
    assert_equal ["one"], received(reader)
    assert_empty received(other)
  end

  test "an update with alternates reaches their subscribers, each once (draft-08, Publication)" do
    both, alternate = subscribe(exact("/a", "/b")), subscribe(exact("/b"))
    publish(["/a", "/b"], "one")
    assert_equal ["one"], received(both)
    assert_equal ["one"], received(alternate)
  end

  test "the wildcard selects everything (draft-08, Matcher Types)" do
    reader = subscribe(exact("*"))
    publish("/a", "one")
    publish("https://example.com/b", "two")
    assert_equal %w[one two], received(reader)
  end

  test "matchers of different types that say the same do not disturb each other" do
    %w[/a *].each do |text|
      readers = [exact(text), pattern(text), [template(text)]].map { |matchers| subscribe(matchers) }
      until readers.empty?
        publish("/a", readers.size.to_s)
        readers.each { |reader| assert_equal readers.size.to_s, received(reader).last, text }
        @engine.unsubscribe(readers.delete_at(readers.size / 2))
      end
    end
  end

  test "URL patterns select by structure" do
    reader = subscribe(pattern("https://example.com/books/:id"))
    publish("https://example.com/books/1", "one")
    publish("https://example.com/films/1", "two")
    publish("https://example.com/books/1/pages", "three")
    assert_equal ["one"], received(reader)
  end

  test "updates of several matchers arrive in the order of publishing, each once" do
    reader = subscribe(exact("/a", "/b", "/c") + pattern("/:any"))
    sent = %w[/c /a /b /a /c /c /b].each_with_index.map { |topic, i| publish(topic, i.to_s) && i.to_s }
    assert_equal sent, received(reader)
  end

  test "the id that publish returns is the one that readers see" do
    reader = subscribe(exact("/a"))
    ids = [publish("/a"), publish("/a", id: "urn:own"), publish("/a")]
    drain
    assert_equal ids, reader.connection.ids
    assert_equal "urn:own", ids[1]
    assert_match(/\A#[\w-]{11}\z/, ids[0])
    refute_equal ids[0], ids[2]
  end

  test "private updates reach only those whose grant covers one of the topics (draft-08, Subscribers)" do
    granted, alternate, stranger = subscribe(exact("/a"), reads: ["/a"]), subscribe(exact("/a"), reads: ["/users/1"]), subscribe(exact("/a"))
    publish("/a", "public")
    publish(["/a", "/users/1"], "secret", private: true)
    publish("/a", "later")
    assert_equal %w[public secret later], received(granted)
    assert_equal %w[public secret later], received(alternate)
    assert_equal %w[public later], received(stranger)
  end

  test "a private update that comes alone is kept from those it is not for" do
    granted, stranger = subscribe(exact("/a"), reads: ["/a"]), subscribe(exact("/a"))
    publish("/a", "secret", private: true)
    assert_equal ["secret"], received(granted)
    assert_empty received(stranger)
    publish("/a", "public")
    assert_equal ["public"], received(stranger)
  end

  test "many publishes between two turns become one write each" do
    reader = subscribe(exact("/a"))
    drain
    10.times { |i| publish("/a", i.to_s) }
    writes = 0
    while (subscriber = @engine.next_ready)
      next unless (bytes = @engine.take(subscriber, 65_536))
      writes += 1
      @engine.wrote(subscriber, subscriber.connection.accept(bytes), now: @now)
    end
    assert_equal 1, writes
    assert_equal 10, reader.connection.data.size
  end
end
