# frozen_string_literal: true

require "stringio"
require "support/format_readers"
require "zlib"

# What an engine must do that compresses streams. Include it before EngineContract, which then tests its other behaviour with gzip too.
module CompressionContract
  PARTS = []
  def self.tests(&block) = PARTS << block
  def self.included(base) = PARTS.each { |part| base.class_eval(&part) }
end

# Streams that receive the same share what is compressed.
CompressionContract.tests do
  test "every form is offered" do
    assert @engine.offers?(:message_pack, :identity)
    skip_unless_available(headers: "zlib.h") unless @engine.offers?(:events, :gzip)
    formats.each { |format, coding| assert @engine.offers?(format, coding) }
  end

  test "compressed streams say what others say, each event with its own bytes at once" do
    plain, streams = subscribe(exact("/a")), Array.new(3) { gzip(exact("/a")) }
    100.times do |i|
      publish("/a", "the text of the event #{i}, which is like the one before #{"é\n" * (i % 3)}", type: ("note" if i.even?), retry_after: (i if i % 7 == 0))
      drain if i % 3 > 0
      next unless i % 3 == 2
      streams.each { |stream| assert_equal plain.connection.received, unzipped(stream).b, i }
    end
    assert_operator streams[0].connection.received.bytesize, :<, plain.connection.received.bytesize / 2
  end

  test "a stream that is changed shares with those that receive the same as it does now" do
    first, other = gzip(exact("/a")), gzip(exact("/b"))
    moved = gzip(exact("/b"), changeable: true)
    text = "the text of an event, which is like the one before and the one behind"
    3.times { |i| publish(["/a", "/b"], text, id: "urn:before:#{i}") && drain }
    @engine.change(moved, grant(exact("/a")), now: @now)
    drain
    grown = Array.new(140) do |i|
      before = [first, moved, other].map { |each| each.connection.received.bytesize }
      publish("/a", text, id: "urn:#{i}") && drain
      [first, moved, other].map { |each| each.connection.received.bytesize }.zip(before).map { |now, then_| now - then_ }
    end
    assert_operator grown[0][0], :<, grown[0][1], "it stands alone at first"
    assert(grown.last(12).all? { |one, its, _| one == its })
    assert_equal [0], grown.map(&:last).uniq
    [first, moved, other].each { |reader| assert_ends_in_order(reader) }
  end

  test "streams with the same matchers share, in whatever order they have them, and none whose grant admits what is private" do
    readers = [gzip(exact("/a", "/b")), gzip(exact("/b", "/a"))]
    insider, more = gzip(exact("/a", "/b"), reads: ["/x"]), gzip(exact("/a", "/b", "/c"))
    100.times { |i| publish([%w[/a], %w[/b], %w[/a /b]][i % 3], "the text of the event #{i}, which is like the one before and the one behind") && drain }
    assert_equal(*readers.map { |reader| reader.connection.received })
    assert_operator 2 * readers[0].connection.received.bytesize, :<, insider.connection.received.bytesize
    assert_equal 1, [*readers, insider, more].map { |reader| unzipped(reader) }.uniq.size
    @engine.unsubscribe(readers[0])
    publish("/b", "last") && drain
    assert_equal said_of(unzipped(insider)), said_of(unzipped(readers[1]))
    [readers[1], insider, more].each { |reader| assert_ends_in_order(reader) }
  end

  test "streams whose matchers have the same text and another type share nothing: each gets what it asked for, and can read it" do
    alike = [exact("/a/:id"), pattern("/a/:id"), template("/a/:id"), exact("/a/{id}"), template("/a/{id}")].map { |matchers| Array(matchers) }
    readers = [*alike, *alike.map { |matchers| matchers + exact("/z") }].map { |matchers| [subscribe(matchers), gzip(matchers)] }
    120.times do |i|
      # The first alone, so that all who receive it are in step, and then several at a time, of which not all receive all.
      publish(%w[/a/:id /a/1 /a/{id}][i % 3], "the text of the event #{i}, which is like the one before and the one behind")
      drain if i % 4 == 0
    end
    drain
    counts = readers.map do |plain, coded|
      assert_equal plain.connection.received.b, unzipped(coded).b
      assert_ends_in_order(coded)
      plain.connection.data.size
    end
    assert_equal [40, 120, 40, 40, 80] * 2, counts
  end

  test "a stream that comes back to those with whom it shared has not got what it skipped" do
    2.times do |i|
      steady, reader = gzip(exact("/a", "/b")), gzip(exact("/b", "/a"), changeable: true)
      publish("/a", "before") && drain
      @engine.change(reader, grant(exact("/a", "/c")), now: @now)
      drain if i.zero?
      publish("/b", "what is said once, and again by others") && drain
      @engine.change(reader, grant(exact("/a", "/b")), now: @now)
      drain if i.zero?
      20.times { publish("/b", "and again by others, what is said once") && drain }
      assert_equal ["before", *["and again by others, what is said once"] * 20], unzipped(reader).scan(/^data: (.*)$/).flatten
      assert_equal 22, unzipped(steady).scan(/^data: /).size
      [steady, reader].each { |each| assert_ends_in_order(each) }
      [steady, reader].each { |each| @engine.unsubscribe(each) }
    end
  end

  test "what is private is never in what others share: their bytes are the same with it and without" do
    told = [nil, "x" * 40, "guess the secret number 12345"].map do |secret|
      @engine = make_engine
      strangers = Array.new(2) { gzip(exact("/a")) }
      insider = gzip(exact("/a"), reads: ["/a"])
      50.times do |i|
        publish("/a", "guess the number #{i}", id: "urn:#{i}")
        publish("/a", secret, private: true) if secret && i % 5 == 0
        drain
      end
      assert_equal secret ? 60 : 50, unzipped(insider).scan("\ndata: ").size
      assert_equal 50, unzipped(strangers[0]).scan("\ndata: ").size
      strangers.map { |reader| reader.connection.received }
    end
    assert_equal 1, told.flatten.uniq.size
  end

  test "a stream that may read what is private shares nothing: each of its events stands alone" do
    reader, same = gzip(exact("/a"), reads: ["/b"]), gzip(exact("/a"))
    sizes = [reader, same].map { |each| each.connection.received.bytesize }
    grown = Array.new(3) do |i|
      publish("/a", "the same text of an event, again and again, so that it can be found once more", id: "urn:#{i}")
      drain
      before, sizes = sizes, [reader, same].map { |each| each.connection.received.bytesize }
      sizes.zip(before).map { |now, then_| now - then_ }
    end
    assert_equal 1, grown.drop(1).map(&:first).uniq.size
    assert_operator grown[2][0], :>, 2 * grown[2][1]
  end

  test "whoever joins shares what is compressed when the next epoch begins, and not what came before" do
    first = gzip(exact("/a"))
    5.times { |i| publish("/a", "the text of the event #{i}, which is like the one before and the one behind") && drain }
    second = gzip(exact("/a"))
    sizes = []
    80.times do |i|
      publish("/a", "the text of the event #{i}, which is like the one before and the one behind")
      before = [first, second].map { |each| each.connection.received.bytesize }
      drain
      sizes << [first, second].map { |each| each.connection.received.bytesize }.zip(before).map { |now, then_| now - then_ }
    end
    assert_operator sizes[1][0], :<, sizes[1][1], "it stands alone for who has joined"
    assert(sizes.last(16).all? { |one, other| one == other }, "and later they get the same")
    assert_equal said_of(unzipped(first)).split("\n\n").last(80), said_of(unzipped(second)).split("\n\n")
  end

  test "a heartbeat to one of many puts that one on blocks of its own, and the others stay in step" do
    readers = Array.new(5) { gzip(exact("/a")) }
    text = "the text of an event, which is like the one before and the one behind"
    2.times { publish("/a", text) && drain }
    [0, 2, 4].each do |i|
      @engine.control(readers[i], ":\n\n")
      2.times { publish("/a", text) && drain }
    end
    texts = readers.map { |reader| unzipped(reader) }
    assert_equal 1, texts.map { |said| said_of(said) }.uniq.size
    assert_equal [1, 0, 1, 0, 1], texts.map { |said| said.scan(/^:/).size }
    sizes = readers.map { |reader| reader.connection.received.bytesize }
    assert_operator 2 * sizes[1], :<, sizes[0]
    assert_equal readers[1].connection.received, readers[3].connection.received
  end

  test "those who all got a heartbeat share again when the next epoch begins, whoever receives the same beside them" do
    reader, insider = gzip(exact("/a")), gzip(exact("/a"), reads: ["/b"])
    publish("/a", "first") && drain
    @engine.control(reader, ":\n\n")
    text = "the text of an event, which is like the one before and the one behind"
    grown = Array.new(80) do |i|
      before = [reader, insider].map { |each| each.connection.received.bytesize }
      publish("/a", text, id: "urn:#{i + 100}") && drain
      [reader, insider].map { |each| each.connection.received.bytesize }.zip(before).map { |now, then_| now - then_ }
    end
    assert_operator 2 * grown.last[0], :<, grown.last[1]
    assert_equal said_of(unzipped(reader)), said_of(unzipped(insider))
  end

  test "a large event stands alone for everybody, and whoever was in step is in step again behind it" do
    readers = Array.new(2) { gzip(exact("/a")) }
    text = "the text of an event, which is like the one before and the one behind"
    publish("/a", text) && drain
    joined = gzip(exact("/a"))
    publish("/a", Random.new(12).bytes(50_000).unpack1("H*")) && drain
    sizes = Array.new(2) do |i|
      before = joined.connection.received.bytesize
      publish("/a", text, id: "urn:#{i}") && drain
      joined.connection.received.bytesize - before
    end
    assert_operator 2 * sizes[1], :<, sizes[0], "who has joined before it is in step behind it, too"
    [*readers, joined].each { |reader| assert unzipped(reader).end_with?("data: #{text}\n\n") }
    [*readers, joined].each { |reader| assert_ends_in_order(reader) }
  end

  test "more groups than there may be: the rest stand alone, and say the same" do
    readers = Array.new(70) { |i| gzip(exact("/a", "/#{i}")) }
    40.times { |i| publish("/a", "number #{i}") && drain }
    expected = 40.times.map { |i| "number #{i}" }
    readers.each { |reader| assert_equal expected, unzipped(reader).scan(/^data: (.*)$/).flatten }
    readers.each { |reader| @engine.unsubscribe(reader) }
    assert_equal 0, @engine.stats[:subscribers]
    late = gzip(exact("/a"))
    publish("/a", "late")
    drain
    assert_includes unzipped(late), "data: late\n\n"
  end

  test "streams that name a matcher share what is compressed as others do, until they have another" do
    lone = Array.new(2) { naming(exact("/a"), coding: :gzip) }
    other = subscribe(exact("/a"), coding: :gzip)
    40.times { |i| publish("/a", "the same text as in the events before it, number #{i}") && drain }
    assert_equal [other.connection.received] * 2, lone.map { |reader| reader.connection.received }
    assert @engine.change(lone.last, grant(exact("/a", "/b")), now: @now)
    publish("/a", "after")
    assert_equal [[["match: /a"], "after"], [[], "after"]], lone.reverse.map { |reader| named(reader, :gzip).last }
  end

  test "a compressed stream whose events name matchers ends in order, its checksum with the names" do
    reader = naming(exact("/a", "/b"), coding: :gzip)
    publish("/a", "1")
    publish("/b", "2")
    drain
    next unless reader.respond_to?(:last_words)
    decoded = FormatReaders::Gzip.new << (reader.connection.received + reader.last_words("retry: 1000\n\n"))
    assert_predicate decoded, :finished?
  end
end

# Compressed streams to which anything happens at any time, each beside one that is not compressed.
CompressionContract.tests do
  # What is written to it last, where it is the driver that ends streams.
  def last_words(reader, words) = reader.respond_to?(:last_words) ? reader.last_words(words) : ""

  # A stream that ended in order, read at once, and in parts of some bytes each: the checksum and the length are what was sent.
  def assert_whole(text, bytes, parts)
    file = Zlib::GzipReader.new(StringIO.new(bytes))
    assert_equal text.b, file.read.b
    file.close
    inflate = Zlib::Inflate.new(16 + Zlib::MAX_WBITS)
    said = +"".b
    0.step(bytes.bytesize - 1, parts) { |at| said << inflate.inflate(bytes.byteslice(at, parts)) }
    assert_equal text.b, said
    assert_predicate inflate, :finished?
    assert_equal [Zlib.crc32(text), text.bytesize], [inflate.finish && bytes.byteslice(-8, 4).unpack1("V"), inflate.total_out]
  end

  # Publishes for the topics /a, /b and /c, something private now and then.
  def publish_some(random, number)
    (1 + random.rand(4)).times do |i|
      text = "the text of the event #{number}.#{i} #{random.bytes(random.rand(40)).unpack1("H*")}"
      publish(%w[/a /a /b /c].sample(1 + random.rand(2), random: random).uniq, text, private: random.rand(5).zero?)
    end
  end

  # Something happens to a stream and to the one that it is compared with: a heartbeat, a gap, another grant, a socket that is full or
  # is so no more.
  def happen_to(random, twins)
    readers = twins.values_at(:plain, :formed)
    case random.rand(9)
    when 0, 1 then readers.each { |reader| @engine.control(reader, ":\n\n") }
    when 2 then readers.each { |reader| @engine.control(reader, "event: mercure\ndata: {\"reason\":\"overrun\"}\n\n") }
    when 3
      wanted = grant(exact(*%w[/a /b /c].sample(1 + random.rand(2), random: random)), reads: [[], [], ["/a"]].sample(random: random))
      readers.each { |reader| assert @engine.change(reader, wanted, now: @now) }
    when 4, 5 then readers.each { |reader| reader.connection.room = 0 }
    when 6, 7
      readers.each { |reader| reader.connection.room = nil }
      readers.each { |reader| @engine.writable(reader) }
    end
  end

  test "each of 200 compressed streams can be decoded to all that was said to it whenever something was, and ends in order" do
    random = Random.new(13)
    all = []
    200.times do |number|
      matchers, reads = [exact("/a"), exact("/a"), exact("/a", "/b"), pattern("/:any")].sample(random: random), [[], [], [], ["/a"]].sample(random: random)
      plain, formed = %i[identity gzip].map { |coding| subscribe(matchers, reads: reads, coding: coding, changeable: true) }
      all << {plain: plain, formed: formed, reader: FormatReaders::Gzip.new, read: 0}
      publish_some(random, number)
      happen_to(random, all.sample(random: random)) if random.rand(3).zero?
      drain
      all.each do |twins|
        received = twins[:formed].connection.received
        twins[:reader] << received.byteslice(twins[:read], received.bytesize)
        twins[:read] = received.bytesize
        assert_equal twins[:plain].connection.received.b, twins[:reader].text, "the one that joined before #{number}"
      end
    end
    all.each_with_index do |twins, i|
      text, bytes = twins.values_at(:plain, :formed).map { |reader| reader.connection.received.b + last_words(reader, "retry: 1000\n\n").b }
      assert_whole(text, bytes, 1 + random.rand(90)) if bytes != twins[:formed].connection.received.b
    rescue => error
      flunk "the #{i}th: #{error.message}"
    end
  end
end
