# frozen_string_literal: true

require "support/format_readers"

EngineContract.tests do
  test "a form or a coding that there is not is refused, as is one that the engine has not, and nobody is let in" do
    assert_raises(Hikyaku::UnknownStreamFormat) { subscribe(exact("/a"), format: :yaml) }
    assert_raises(Hikyaku::UnknownStreamFormat) { subscribe(exact("/a"), coding: :br) }
    assert_raises(Hikyaku::UnknownStreamFormat) { @engine.offers?(:events, :br) }
    assert @engine.offers?(:events, :identity)
    %i[events message_pack].product(%i[gzip identity]) do |format, coding|
      next if @engine.offers?(format, coding)
      assert_raises(Hikyaku::UnsupportedStreamFormat) { @engine.subscribe(grant(exact("/a")), now: @now, format: format, coding: coding) }
    end
    assert_equal 0, @engine.subscriber_count
  end
end

# Streams in other formats carry the same events as Server-Sent Events do.
EngineContract.tests do
  def gzip(matchers, **options) = subscribe(matchers, coding: :gzip, **options)

  # What a gzip stream has said so far.
  def unzipped(subscriber) = (FormatReaders::Gzip.new << subscriber.connection.received).text

  def values_of(bytes)
    pack = FormatReaders::Pack.new << bytes
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

  # Each format and coding that the engine must have, beside Server-Sent Events as they are.
  def formats = is_a?(CompressionContract) ? [%i[events gzip], %i[message_pack identity], %i[message_pack gzip]] : [%i[message_pack identity]]

  # What a reader of any form has got: values as MessagePack has them.
  def values(subscriber, format, coding)
    bytes = subscriber.connection.received
    bytes = (FormatReaders::Gzip.new << bytes).text if coding == :gzip
    return values_of(bytes) if format == :message_pack
    bytes.split("\n\n").flat_map do |block|
      next [(block == ": caught up") ? true : nil] if block.start_with?(":")
      lines = block.split("\n").map { |line| line.split(": ", 2) }
      fields = lines.to_h
      data = lines.filter_map { |name, value| (value || "").dup.force_encoding("UTF-8") if name == "data" }
      [fields["retry"]&.to_i, ([fields["id"], fields["event"], data.join("\n")] if data.any?)].compact
    end
  end

  test "MessagePack says the same: identity, type and data, a time to come back before, nil where there is none" do
    plain, packed = subscribe(exact("/a")), subscribe(exact("/a"), format: :message_pack)
    both = gzip(exact("/a"), format: :message_pack) if is_a?(CompressionContract)
    ids = [publish("/a", ""), publish("/a", "one\ntwo\n", type: "note", retry_after: 70_000), publish("/a", "é" * 20_000, id: "urn:é")]
    [0, 5, 31, 32, 255, 256, 65_535, 65_536].each { |size| ids << publish("/a", "x" * size, retry_after: size) }
    drain
    @engine.notify("/a", Hikyaku::Hub::Event.transient(data: "figures", type: "mercure"))
    drain
    [packed.connection.received, (unzipped(both) if both)].compact.each do |bytes|
      said = values_of(bytes)
      assert_equal [[ids[0], nil, ""], 70_000, [ids[1], "note", "one\ntwo\n"], ["urn:é", nil, "é" * 20_000], 0, [ids[3], nil, ""], 5], said.first(7)
      assert_equal [nil, "mercure", "figures"], said.last
      assert_equal ids, said.grep(Array).filter_map(&:first)
      assert_equal plain.connection.ids.map { |id| id&.b }, said.grep(Array).map { |event| event[0]&.b }
    end
  end

  test "line breaks in data are what a reader of an event stream has" do
    packed = subscribe(exact("/a"), format: :message_pack)
    publish("/a", "a\r\nb\rc\n\nd")
    drain
    assert_equal "a\nb\nc\n\nd", values_of(packed.connection.received).last.last
  end

  test "heartbeats, gaps, the word of having caught up: each form says them in its way" do
    formats.each do |format, coding|
      @engine = make_engine(heartbeat: 10, history: 10_000)
      reader = subscribe(exact("/a"), format: format, coding: coding, last_event_id: "urn:unknown", changeable: true)
      drain
      publish("/a", "first")
      drain
      12.times { (@now += 1) && @engine.tick(now: @now) }
      drain
      reader.connection.room = 0
      100.times { |i| publish("/a", i.to_s * 10) }
      drain
      let_all_read([reader])
      said = values(reader, format, coding)
      assert_equal "unknown", JSON.parse(said[0][2])["reason"]
      assert_equal [true, "first", nil], [said[1], said[2][2], said[3]]
      assert_equal ["mercure", "overrun"], [said[4][1], JSON.parse(said[4][2])["reason"]], "#{format} #{coding}"
      assert_equal ["98" * 10, "99" * 10], said.last(2).map(&:last)
    end
  end

  test "a reader may stop at any byte, in any form, and loses or repeats nothing" do
    formats.each do |format, coding|
      publish("/a", "first", id: "urn:#{format}#{coding}", type: "note", retry_after: 5)
      publish("/b/1", "two\nlines")
      publish("/a", "last")
      options = {last_event_id: "earliest", format: format, coding: coding, changeable: true}
      whole = subscribe(exact("/a") + pattern("/b/:id"), **options)
      drain
      expected = values(whole, format, coding)
      (1...whole.connection.received.bytesize).each do |cut|
        reader = subscribe(exact("/a") + pattern("/b/:id"), room: cut, **options)
        drain
        @engine.control(reader, ":\n\n")
        2.times { (reader.connection.room = 1) && @engine.writable(reader) && drain }
        let_all_read([reader])
        assert_equal expected.compact, values(reader, format, coding).compact, "#{format} #{coding} stopped after #{cut} bytes"
        assert_equal 1, values(reader, format, coding).count(nil)
        @engine.unsubscribe(reader)
      end
      assert_equal expected, values(whole, format, coding)
    end
  end

  # A stream of each form, and one that is not of another form to compare them with: subscribed alike.
  def twins(matchers, random, **options)
    format, coding = formats.sample(random: random)
    {plain: subscribe(matchers, **options), formed: subscribe(matchers, format: format, coding: coding, room: random.rand(2).zero? ? nil : random.rand(300), **options),
     format: format, coding: coding}
  end

  # Where it is the driver that ends streams, the engine tells it what to say last.
  def assert_ends_in_order(reader)
    return unless reader.respond_to?(:last_words)
    gzip = FormatReaders::Gzip.new << reader.connection.received << reader.last_words("retry: 1\n\n")
    assert_predicate gzip, :finished?
  end

  def assert_twins(twins, message = nil)
    plain = twins[:plain].connection.received
    formed = twins[:formed].connection.received
    formed = (FormatReaders::Gzip.new << formed).text if twins[:coding] == :gzip
    return assert_equal said_of(plain), said_of(formed), message if twins[:format] == :events
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

  # As of event streams. Only the engine in Ruby tells whether a part of an event was sent.
  test "random publishing, reading, blocking and changing of MessagePack streams" do
    next unless @engine.is_a?(Hikyaku::Hub::RubyEngine)
    [*(200...208).map { |seed| [seed, 100_000_000] }, *(300...308).map { |seed| [seed, 8_000] }].each do |seed, history|
      run_at_random(seed, history: history, format: :message_pack)
    rescue => error
      flunk "seed #{seed}: #{error.message} #{error.backtrace.first(6)}"
    end
  end

  test "readers that the history passes are told, whatever the form, and the bytes stay what can be decoded" do
    formats.each do |format, coding|
      random = Random.new(10)
      @engine = make_engine(history: 10_000)
      readers = Array.new(8) { subscribe(exact("/a"), format: format, coding: coding, room: random.rand(100)) }
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
        said = values(reader, format, coding)
        numbers = said.map { |_, type, data| (type == "mercure") ? :gap : data.to_i }
        numbers.each_cons(2) { |one, other| assert(one == :gap || other == :gap || other == one + 1, "#{format} #{coding}: #{other} behind #{one}") }
        assert_equal 399, numbers.last
        assert_ends_in_order(reader) if coding == :gzip
      end
    end
  end

  test "what is said to one alone may be of any length, and is taken in parts like an event" do
    long = Hikyaku::Hub::Event.transient(data: Random.new(11).bytes(100_000).unpack1("H*"), type: "mercure")
    formats.each do |format, coding|
      reader = subscribe(exact("/a"), format: format, coding: coding, room: 0)
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
      assert_equal [[nil, "mercure", long[/^data: (.*)$/, 1]], nil, "0", "1", "2"], values(reader, format, coding).map { |value| value&.first ? value.last : value }
      assert_ends_in_order(reader) if coding == :gzip
      @engine.unsubscribe(reader)
    end
    assert_equal 3 * formats.size, @engine.stats[:deliveries]
  end

  test "whoever catches up is told, also where others have just caught up on the same" do
    subscribe(exact("/a"))
    formats.each do |format, coding|
      id = publish("/a", "first")
      others = [nil, nil, id].map { |cursor| subscribe(exact("/a"), format: format, coding: coding, last_event_id: cursor) }
      others.each { |other| @engine.control(other, ":\n\n") }
      drain
      publish("/a", "second")
      drain
      reader = subscribe(exact("/a"), format: format, coding: coding, last_event_id: id, changeable: true)
      @engine.control(reader, ":\n\n")
      drain
      assert_equal [nil, "second", true], values(reader, format, coding).map { |value| value.is_a?(Array) ? value.last : value }
      others.each { |other| assert_equal "second", values(other, format, coding).last.last }
    end
  end
end
