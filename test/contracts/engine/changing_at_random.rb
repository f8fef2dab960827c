# frozen_string_literal: true

require "support/format_readers"
require "support/modelled_stream"

# Whatever is published, read, blocked and changed: a model says what each stream gets next.
EngineContract.tests do
  def choose_names(random) = ModelledStream::PATTERNS.keys.sample(1 + random.rand(4), random: random)

  def matchers_of(names) = names.flat_map { |name| name.include?(":") ? pattern(name) : exact(name) }

  def choose_reads(random) = random.rand(3).zero? ? ModelledStream::TOPICS.sample(random.rand(3), random: random) : ["/a"]

  def first_retained = @log.size - @engine.stats[:history_updates] + 1

  def publish_at_random(random)
    topics = ModelledStream::TOPICS.sample(1 + random.rand(2), random: random)
    secret = random.rand(4).zero?
    id = publish(topics, "#{@log.size + 1} #{"." * random.rand(40)}", private: secret)
    @log << ModelledStream::Published.new(topics, secret, id)
  end

  # What a stream has said so far, as an event stream would.
  def said_by(stream)
    received = stream[:reader].connection.received
    return received unless stream[:pack]
    stream[:pack] << received.byteslice(stream[:decoded]..)
    stream[:decoded] = received.bytesize
    stream[:pack].values.map { |value| value.is_a?(Array) ? "event: #{value[1]}\nid: #{value[0]}\ndata: #{value[2]}\n\n" : ":\n\n" }.join
  end

  # Whether it has a part of an event.
  def within_event?(stream, bytes) = stream[:pack] ? stream[:reader].offset > 0 : bytes[stream[:seen]] == "i"

  # What was sent of a frame that has not ended, and what is still to be sent to it alone.
  def unfinished(stream)
    rest = stream[:pack] ? stream[:pack].rest : said_by(stream)[stream[:seen]..]
    rest.b + stream[:reader].control.to_s.b
  end

  # Tells the model what its reader has got since, and checks it.
  def follow(stream)
    model = stream[:model]
    bytes = said_by(stream)
    while (ending = bytes.index("\n\n", stream[:seen]))
      block = bytes[stream[:seen]...ending]
      stream[:seen] = ending + 2
      next model.tell if block.include?("event: mercure")
      next if block.start_with?(":")
      stream[:last] = block[/^data: (\d+)/, 1].to_i
      model.received(stream[:last], first_retained)
    end
    model.begin_event(first_retained) if within_event?(stream, bytes)
  end

  def change_at_random(stream, random)
    reader, model = stream.values_at(:reader, :model)
    follow(stream)
    return if reader.closing
    model.tell if unfinished(stream).include?("gap")
    model.passed(reader.cursor, first_retained)
    names = random.rand(4).zero? ? model.names.shuffle(random: random) : choose_names(random)
    names |= model.names if random.rand(2).zero?
    reads = random.rand(3).zero? ? choose_reads(random) : model.reads
    cursor = [nil, nil, "", "earliest", "urn:unknown", *Array.new(8) { @log.sample(random: random)&.id }].sample(random: random)
    from, answer = @engine.resolve(cursor, reader.grant)
    wanted = grant(matchers_of(names), reads: reads)
    if model.rewinds?(names, from) && model.full?
      return assert_raises(Hikyaku::TooManyRewinds) { @engine.change(reader, wanted, now: @now, last_event_id: cursor) }
    end
    model.tell if answer == "earliest" && (names - model.names).any?
    assert @engine.change(reader, wanted, now: @now, last_event_id: cursor)
    model.change(names, reads, from)
  end

  def run_at_random(seed, history:, steps: 300, format: :events)
    random = Random.new(seed)
    @engine = make_engine(history: history)
    @log = []
    streams = []
    steps.times do
      case random.rand(16)
      when 0..5 then publish_at_random(random)
      when 6
        next if streams.size > 12
        names, reads = choose_names(random), choose_reads(random)
        reader = subscribe(matchers_of(names), reads: reads, room: random.rand(120), format: format)
        streams << {reader: reader, model: ModelledStream.new(@log, names, reads, @log.size), seen: 0}
        streams.last.update(pack: FormatReaders::Pack.new, decoded: 0) if format == :message_pack
      when 7..9 then streams.sample(random: random)&.then { |stream| change_at_random(stream, random) }
      when 10..12
        reader = streams.sample(random: random)&.fetch(:reader) or next
        reader.connection.room = random.rand(150)
        @engine.writable(reader) if reader.blocked
      else
        drain(max_bytes: 1 + random.rand(300))
        streams.each { |stream| follow(stream) }
      end
    end
    streams.each { |stream| (stream[:reader].connection.room = nil) || @engine.writable(stream[:reader]) }
    drain
    streams.each do |stream|
      follow(stream)
      stream[:model].finish(first_retained)
    end
    streams
  end

  test "random publishing, reading, blocking and changing: everyone gets what it should, in order, and nothing twice" do
    runs = (0...12).flat_map do |seed|
      run_at_random(seed, history: 100_000_000)
    rescue => error
      flunk "seed #{seed}: #{error.message} #{error.backtrace.first(6)}"
    end
    assert_operator runs.sum { |stream| stream[:model].rewinds }, :>, 40
    assert_equal 0, @engine.stats[:gaps]
  end

  test "random changing while the history passes slow readers: what is lost was told of before" do
    gaps = (100...112).sum do |seed|
      run_at_random(seed, history: 8_000)
      @engine.stats[:gaps]
    rescue => error
      flunk "seed #{seed}: #{error.message} #{error.backtrace.first(6)}"
    end
    assert_operator gaps, :>, 5
  end
end
