# frozen_string_literal: true

require "support/form_readers"

EngineContract.tests do
  test "a form or a coding that there is not is refused, as is one that the engine has not, and nobody is let in" do
    assert_raises(Hikyaku::UnknownForm) { subscribe(exact("/a"), form: :yaml) }
    assert_raises(Hikyaku::UnknownForm) { subscribe(exact("/a"), coding: :br) }
    assert_raises(Hikyaku::UnknownForm) { @engine.offers?(:events, :br) }
    assert @engine.offers?(:events, :identity)
    %i[events message_pack].product(%i[gzip identity]) do |form, coding|
      next if @engine.offers?(form, coding)
      assert_raises(Hikyaku::FormNotOffered) { @engine.subscribe(grant(exact("/a")), now: @now, form: form, coding: coding) }
    end
    assert_equal 0, @engine.subscriber_count
  end
end

# Streams that are compressed, or MessagePack, or both: they say what the others say.
EngineContract.tests do
  def gzip(matchers, **options) = subscribe(matchers, coding: :gzip, **options)

  # What a gzip stream has said so far.
  def unzipped(subscriber) = (FormReaders::Gzip.new << subscriber.connection.received).text

  def values_of(bytes)
    pack = FormReaders::Pack.new << bytes
    assert_predicate pack, :whole?
    pack.values
  end

  # As the reader of an event stream has it, without what is said to one alone.
  def said_of(bytes) = bytes.b.gsub(/^:.*\n\n/, "")

  def let_all_read(readers)
    readers.each do |reader|
      reader.connection.room = nil
      @engine.writable(reader)
    end
    drain
  end

  def forms = [%i[events gzip], %i[message_pack identity], %i[message_pack gzip]]

  # What a reader of any form has got: values as MessagePack has them.
  def values(subscriber, form, coding)
    bytes = subscriber.connection.received
    bytes = (FormReaders::Gzip.new << bytes).text if coding == :gzip
    return values_of(bytes) if form == :message_pack
    bytes.split("\n\n").flat_map do |block|
      next [(block == ": caught up") ? true : nil] if block.start_with?(":")
      lines = block.split("\n").map { |line| line.split(": ", 2) }
      fields = lines.to_h
      data = lines.filter_map { |name, value| (value || "").dup.force_encoding("UTF-8") if name == "data" }
      [fields["retry"]&.to_i, ([fields["id"], fields["event"], data.join("\n")] if data.any?)].compact
    end
  end

  test "every form is offered" do
    assert @engine.offers?(:message_pack, :identity)
    skip_unless_available(headers: "zlib.h") unless @engine.offers?(:events, :gzip)
    forms.each { |form, coding| assert @engine.offers?(form, coding) }
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

  test "MessagePack says the same: identity, type and data, a time to come back before, nil where there is none" do
    plain, packed, both = subscribe(exact("/a")), subscribe(exact("/a"), form: :message_pack), gzip(exact("/a"), form: :message_pack)
    ids = [publish("/a", ""), publish("/a", "one\ntwo\n", type: "note", retry_after: 70_000), publish("/a", "é" * 20_000, id: "urn:é")]
    [0, 5, 31, 32, 255, 256, 65_535, 65_536].each { |size| ids << publish("/a", "x" * size, retry_after: size) }
    drain
    @engine.notify("/a", Hikyaku::Hub::Event.transient(data: "figures", type: "mercure"))
    drain
    [packed.connection.received, unzipped(both)].each do |bytes|
      said = values_of(bytes)
      assert_equal [[ids[0], nil, ""], 70_000, [ids[1], "note", "one\ntwo\n"], ["urn:é", nil, "é" * 20_000], 0, [ids[3], nil, ""], 5], said.first(7)
      assert_equal [nil, "mercure", "figures"], said.last
      assert_equal ids, said.grep(Array).filter_map(&:first)
      assert_equal plain.connection.ids.map { |id| id&.b }, said.grep(Array).map { |event| event[0]&.b }
    end
  end

  test "line breaks in data are what a reader of an event stream has" do
    packed = subscribe(exact("/a"), form: :message_pack)
    publish("/a", "a\r\nb\rc\n\nd")
    drain
    assert_equal "a\nb\nc\n\nd", values_of(packed.connection.received).last.last
  end

  test "heartbeats, gaps, the word of having caught up: each form says them in its way" do
    forms.each do |form, coding|
      @engine = make_engine(heartbeat: 10, history: 10_000)
      reader = subscribe(exact("/a"), form: form, coding: coding, last_event_id: "urn:unknown", changeable: true)
      drain
      publish("/a", "first")
      drain
      12.times { (@now += 1) && @engine.tick(now: @now) }
      drain
      reader.connection.room = 0
      100.times { |i| publish("/a", i.to_s * 10) }
      drain
      let_all_read([reader])
      said = values(reader, form, coding)
      assert_equal "unknown", JSON.parse(said[0][2])["reason"]
      assert_equal [true, "first", nil], [said[1], said[2][2], said[3]]
      assert_equal ["mercure", "overrun"], [said[4][1], JSON.parse(said[4][2])["reason"]], "#{form} #{coding}"
      assert_equal ["98" * 10, "99" * 10], said.last(2).map(&:last)
    end
  end

  test "a reader may stop at any byte, in any form, and loses or repeats nothing" do
    forms.each do |form, coding|
      publish("/a", "first", id: "urn:#{form}#{coding}", type: "note", retry_after: 5)
      publish("/b/1", "two\nlines")
      publish("/a", "last")
      options = {last_event_id: "earliest", form: form, coding: coding, changeable: true}
      whole = subscribe(exact("/a") + pattern("/b/:id"), **options)
      drain
      expected = values(whole, form, coding)
      (1...whole.connection.received.bytesize).each do |cut|
        reader = subscribe(exact("/a") + pattern("/b/:id"), room: cut, **options)
        drain
        @engine.control(reader, ":\n\n")
        2.times { (reader.connection.room = 1) && @engine.writable(reader) && drain }
        let_all_read([reader])
        assert_equal expected.compact, values(reader, form, coding).compact, "#{form} #{coding} stopped after #{cut} bytes"
        assert_equal 1, values(reader, form, coding).count(nil)
        @engine.unsubscribe(reader)
      end
      assert_equal expected, values(whole, form, coding)
    end
  end

  # A stream of each form, and one that is not of another form to compare them with: subscribed alike.
  def twins(matchers, random, **options)
    form, coding = forms.sample(random: random)
    {plain: subscribe(matchers, **options), formed: subscribe(matchers, form: form, coding: coding, room: random.rand(2).zero? ? nil : random.rand(300), **options),
     form: form, coding: coding}
  end

  # Where it is the driver that ends streams, the engine tells it what to say last.
  def assert_ends_in_order(reader)
    return unless reader.respond_to?(:last_words)
    gzip = FormReaders::Gzip.new << reader.connection.received << reader.last_words("retry: 1\n\n")
    assert_predicate gzip, :finished?
  end

  def assert_twins(twins, message = nil)
    plain = twins[:plain].connection.received
    formed = twins[:formed].connection.received
    formed = (FormReaders::Gzip.new << formed).text if twins[:coding] == :gzip
    return assert_equal said_of(plain), said_of(formed), message if twins[:form] == :events
    assert_equal values(twins[:plain], :events, :identity) - [nil, true], values_of(formed) - [nil, true], message
  end

  test "whoever joins, at any time, gets byte for byte what an event stream would say: 200 of them, random" do
    random = Random.new(8)
    wishes = [exact("/a"), exact("/a"), exact("/a", "/b"), pattern("/:any"), exact("/c")]
    ids = []
    all = Array.new(200) do |i|
      (1 + random.rand(6)).times do
        topics = %w[/a /b /c].sample(1 + random.rand(2), random: random)
        size = random.rand(60).zero? ? 70_000 : random.rand(300)
        ids << publish(topics, "#{i} é #{random.bytes(size / 2).unpack1("H*")}#{"\n" if random.rand(9).zero?}", private: random.rand(4).zero?)
        drain(max_bytes: 1 + random.rand(2_000)) if random.rand(3).zero?
      end
      @engine.each_subscriber { |reader| @engine.control(reader, ":\n\n") if random.rand(40).zero? }
      twins(wishes.sample(random: random), random, reads: [[], [], ["/a"], ["/b"]].sample(random: random),
        last_event_id: [nil, nil, "", "earliest", ids.sample(random: random)].sample(random: random)).tap do
        @engine.each_subscriber do |reader|
          next unless reader.connection && random.rand(3).zero?
          reader.connection.room = random.rand(4).zero? ? nil : random.rand(700)
          @engine.writable(reader) if reader.blocked
        end
      end
    end
    let_all_read(all.flat_map { |twins| twins.values_at(:plain, :formed) })
    all.each_with_index { |twins, i| assert_twins(twins, "the #{i}th") }
    all.each { |twins| assert_ends_in_order(twins[:formed]) if twins[:coding] == :gzip }
    assert_equal 0, @engine.stats[:gaps]
  end

  test "streams that are changed while they last say what others say" do
    random = Random.new(9)
    log = []
    all = Array.new(12) { twins(exact("/a"), random, changeable: true) }
    40.times do |i|
      4.times { log << publish(["/a", "/b", "/c"].sample(1 + random.rand(2), random: random), "#{i} #{"." * random.rand(40)}", private: random.rand(4).zero?) }
      drain(max_bytes: 100 + random.rand(500))
      twins = all.sample(random: random)
      let_all_read(twins.values_at(:plain, :formed))
      wanted = grant(exact(*%w[/a /b /c].sample(1 + random.rand(2), random: random)), reads: [[], ["/a"]].sample(random: random))
      cursor = [nil, nil, log.sample(random: random)].sample(random: random)
      twins.values_at(:plain, :formed).each { |reader| assert @engine.change(reader, wanted, now: @now, last_event_id: cursor) }
      all.each { |each| each[:formed].connection.room = random.rand(400) if random.rand(3).zero? }
      all.each { |each| @engine.writable(each[:formed]) if each[:formed].blocked }
    end
    let_all_read(all.flat_map { |each| each.values_at(:plain, :formed) })
    all.each_with_index { |each, i| assert_twins(each, "the #{i}th") }
    all.each { |each| assert_ends_in_order(each[:formed]) if each[:coding] == :gzip }
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

  # As of streams that are not compressed: where an event is begun only the engine in Ruby tells.
  test "random publishing, reading, blocking and changing of compressed streams" do
    next unless @engine.is_a?(Hikyaku::Hub::RubyEngine)
    [*(200...208).map { |seed| [seed, 100_000_000] }, *(300...308).map { |seed| [seed, 8_000] }].each do |seed, history|
      streams = run_at_random(seed, history: history, coding: :gzip)
      streams.each { |stream| assert_ends_in_order(stream[:reader]) unless stream[:reader].closing }
    rescue => error
      flunk "seed #{seed}: #{error.message} #{error.backtrace.first(6)}"
    end
  end

  test "readers that the history passes are told, whatever the form, and the bytes stay what can be decoded" do
    forms.each do |form, coding|
      random = Random.new(10)
      @engine = make_engine(history: 10_000)
      readers = Array.new(8) { subscribe(exact("/a"), form: form, coding: coding, room: random.rand(100)) }
      400.times do |i|
        publish("/a", "#{i} #{random.bytes(20).unpack1("H*")}")
        drain(max_bytes: 1 + random.rand(1_000)) if random.rand(3).zero?
        reader = readers.sample(random: random)
        reader.connection.room = random.rand(300)
        @engine.writable(reader) if random.rand(6).zero?
      end
      let_all_read(readers)
      assert_operator @engine.stats[:gaps], :>, 0
      readers.each do |reader|
        said = values(reader, form, coding)
        numbers = said.map { |_, type, data| (type == "mercure") ? :gap : data.to_i }
        numbers.each_cons(2) { |one, other| assert(one == :gap || other == :gap || other == one + 1, "#{form} #{coding}: #{other} behind #{one}") }
        assert_equal 399, numbers.last
        assert_ends_in_order(reader) if coding == :gzip
      end
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

  test "what is said to one alone may be of any length, and is taken in parts like an event" do
    long = Hikyaku::Hub::Event.transient(data: Random.new(11).bytes(100_000).unpack1("H*"), type: "mercure")
    forms.each do |form, coding|
      reader = subscribe(exact("/a"), form: form, coding: coding, room: 0)
      @engine.control(reader, long)
      drain
      3.times do |i|
        reader.connection.room = 10_000
        @engine.writable(reader)
        drain
        @engine.control(reader, ":\n\n") if i == 1
        publish("/a", i.to_s)
      end
      assert_equal 30_000, reader.connection.received.bytesize
      let_all_read([reader])
      assert_equal [[nil, "mercure", long[/^data: (.*)$/, 1]], nil, "0", "1", "2"], values(reader, form, coding).map { |value| value&.first ? value.last : value }
      assert_ends_in_order(reader) if coding == :gzip
      @engine.unsubscribe(reader)
    end
    assert_equal 3 * forms.size, @engine.stats[:deliveries]
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

  test "whoever catches up is told, also where others have just caught up on the same" do
    subscribe(exact("/a"))
    forms.each do |form, coding|
      id = publish("/a", "first")
      others = [nil, nil, id].map { |cursor| subscribe(exact("/a"), form: form, coding: coding, last_event_id: cursor) }
      others.each { |other| @engine.control(other, ":\n\n") }
      drain
      publish("/a", "second")
      drain
      reader = subscribe(exact("/a"), form: form, coding: coding, last_event_id: id, changeable: true)
      @engine.control(reader, ":\n\n")
      drain
      assert_equal [nil, "second", true], values(reader, form, coding).map { |value| value.is_a?(Array) ? value.last : value }
      others.each { |other| assert_equal "second", values(other, form, coding).last.last }
    end
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
end
