# frozen_string_literal: true

require "support/format_readers"
require "zlib"

# Streams whose events name the matchers that selected them.
EngineContract.tests do
  def naming(matchers, **options) = subscribe(matchers, naming: true, changeable: true, **options)

  # What has been said to it, decoded.
  def text_of(reader, coding)
    bytes = reader.connection.received
    (coding == :gzip) ? (FormatReaders::Gzip.new << bytes).text : bytes.b
  end

  # Of each event what it says before its own fields, and its data.
  def named(reader, coding = :identity)
    drain
    text_of(reader, coding).force_encoding("UTF-8").split("\n\n").filter_map do |block|
      names = block.lines(chomp: true).take_while { |line| line.start_with?("match", "topic") }
      data = block[/^data: (.*)/, 1] and [names, data]
    end
  end

  EngineContract.codings(self).each do |coding|
    test "each event of a stream with several matchers names those that selected it, #{coding}" do
      reader = naming(exact("/a", "/b") + pattern("/:any") + [template("/b")], coding: coding)
      publish("/a", "1")
      publish(%w[/b /a], "2", type: "note")
      publish("/c", "3")
      publish("/c/d", "for nobody")
      all = ["match: /a", "match: /b", "match_urlpattern: /:any", "topic: /b"]
      assert_equal [[all.values_at(0, 2), "1"], [all, "2"], [all.values_at(2), "3"]], named(reader, coding)
    end

    test "what another had selected already comes again for a matcher that goes back, and names that one, #{coding}" do
      seen = publish("/x", "seen")
      reader = naming(exact("/a"), coding: coding)
      publish(%w[/a /b], "1")
      publish("/b", "2")
      publish("/a", "3")
      assert_equal [[[], "1"], [[], "3"]], named(reader, coding)
      assert @engine.change(reader, grant(exact("/a", "/b")), now: @now, last_event_id: seen)
      publish(%w[/a /b], "4")
      assert_equal [[["match: /b"], "1"], [["match: /b"], "2"], [["match: /a", "match: /b"], "4"]], named(reader, coding).drop(2)
    end

    test "a stream with one matcher names it as soon as it has had another, for good, #{coding}" do
      reader = naming(exact("/a"), coding: coding)
      publish("/a", "1")
      drain
      assert @engine.change(reader, grant(exact("/a")), now: @now)
      publish("/a", "2")
      drain
      assert @engine.change(reader, grant(exact("/b")), now: @now)
      publish(%w[/a /b], "3")
      drain
      assert @engine.change(reader, grant(exact("/a")), now: @now)
      publish(%w[/a /b], "4")
      assert_equal [[[], "1"], [[], "2"], [["match: /b"], "3"], [["match: /a"], "4"]], named(reader, coding)
    end

    test "a socket that is full at any byte gets the rest of an event as it began, whatever becomes of the matchers, #{coding}" do
      publish("/x", "old")
      publish(%w[/a /b], "1")
      whole = naming(exact("/a", "/b"), last_event_id: "earliest", coding: coding)
      drain
      (1...whole.connection.received.bytesize).each do |cut|
        reader = naming(exact("/a", "/b"), last_event_id: "earliest", room: cut, coding: coding)
        drain
        assert @engine.change(reader, grant(exact("/b", "/c")), now: @now)
        reader.connection.room = nil
        @engine.writable(reader)
        names, = named(reader, coding).first
        assert_includes [["match: /a", "match: /b"], ["match: /b"]], names, "cut after #{cut} bytes"
        assert_equal 1, named(reader, coding).size, "cut after #{cut} bytes"
        @engine.unsubscribe(reader)
      end
    end

    test "an event that is larger than what is kept of it comes whole, with its names, #{coding}" do
      data = Random.new(1).bytes(100_000).unpack1("H*")
      reader = naming(exact("/a", "/b"), room: 10_000, coding: coding)
      publish("/b", data)
      drain
      reader.connection.room = nil
      @engine.writable(reader)
      assert_equal [[["match: /b"], data]], named(reader, coding)
    end

    test "more names than a block holds come whole, #{coding}" do
      matchers = (0...30).flat_map { |i| exact("/#{i}#{"x" * 3000}") }
      reader = naming(matchers, coding: coding)
      publish(matchers.map(&:pattern), "1")
      assert_equal [[matchers.map { |matcher| "match: #{matcher.pattern}" }, "1"]], named(reader, coding)
    end

    test "what is said beside the log names the topic's matcher, and what is for all names none, #{coding}" do
      reader = naming(exact("/a", "/b"), coding: coding)
      lone = naming(exact("/b"), coding: coding)
      drain
      @engine.notify("/b", "data: news\n\n")
      assert_equal [[["match: /b"], "news"]], named(reader, coding)
      assert_equal [[[], "news"]], named(lone, coding)
      @engine.control(reader, "event: mercure\ndata: {}\n\n")
      assert_equal [[], "{}"], named(reader, coding).last
    end
  end

  test "a matcher that was removed and is added again is caught up again, also while the stream catches up for others" do
    seen = publish("/x", "seen")
    reader = naming(exact("/a", "/b"))
    publish("/b", "1")
    drain
    reader.connection.room = 0
    [exact("/a", "/b", "/c"), exact("/a", "/c"), exact("/a", "/b", "/c")].each do |matchers|
      assert @engine.change(reader, grant(matchers), now: @now, last_event_id: seen)
      publish("/a", "for one who is slow")
      drain
    end
    reader.connection.room = nil
    @engine.writable(reader)
    assert_equal [[["match: /b"], "1"]] * 2, named(reader).select { |_, data| data == "1" }
    assert_equal 3, named(reader).count { |_, data| data == "for one who is slow" }
  end

  test "who does not ask for names gets none, beside one who does" do
    plain, reader = subscribe(exact("/a", "/b"), changeable: true), naming(exact("/a", "/b"))
    publish("/a", "1")
    assert_equal [[[["match: /a"], "1"]], [[[], "1"]]], [reader, plain].map { |each| named(each) }
    assert_equal plain.connection.received, reader.connection.received.sub("match: /a\n", "")
  end

  test "private updates are for those who may read them, and name what selected them" do
    reader = naming(exact("/a", "/b"), reads: ["/b"])
    publish("/a", "1", private: true)
    publish(%w[/a /b], "2", private: true)
    assert_equal [[["match: /a", "match: /b"], "2"]], named(reader)
  end

  test "only Server-Sent Events name matchers" do
    error = assert_raises(Hikyaku::UnsupportedStreamFormat) { naming(exact("/a"), format: :message_pack) }
    assert_match(/Server-Sent Events/, error.message)
    assert_equal 0, @engine.stats[:subscribers]
  end
end
