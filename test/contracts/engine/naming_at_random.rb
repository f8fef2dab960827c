# frozen_string_literal: true

require "support/format_readers"

# Whatever is published, read, blocked and changed: the events that name a matcher are those that it selects, from where it was
# added on, in order, each once; whatever its neighbours are.
EngineContract.tests do
  # By the field that names it: what selects it, as a test of topics.
  def selections
    @selections ||= {
      **%w[/a /b /c].to_h { |topic| ["match: #{topic}", ->(topics) { topics.include?(topic) }] },
      "match: *" => ->(_) { true },
      "match_urlpattern: /:any" => ->(topics) { topics.any? { |topic| topic.count("/") == 1 } },
      "match_urlpattern: /d/:any" => ->(topics) { topics.any? { |topic| topic.start_with?("/d/") } }
    }
  end

  def matchers_named(names) = names.flat_map { |name| name.start_with?("match:") ? exact(name.split(": ").last) : pattern(name.split(": ").last) }

  def publish_named(random)
    topics = %w[/a /b /c /d/e].sample(1 + random.rand(2), random: random)
    secret = random.rand(5).zero?
    id = publish(topics, "#{@log.size + 1} #{"." * random.rand(30)}", private: secret)
    @log << [topics, secret, id]
  end

  # So many of the matchers that it never had, and those that it keeps.
  def change_named(stream, random)
    fresh = (selections.keys - stream[:spans].keys).sample(random.rand(3), random: random)
    kept = stream[:names].select { random.rand(4) > 0 }
    wanted = (kept + fresh).shuffle(random: random)
    return if wanted.empty?
    cursor = [nil, "", "earliest", "urn:unknown", *Array.new(8) { @log.sample(random: random)&.last }].sample(random: random)
    from, = @engine.resolve(cursor, stream[:reader].grant)
    return unless @engine.change(stream[:reader], grant(matchers_named(wanted), reads: stream[:reads]), now: @now, last_event_id: cursor)
    stream[:names] = wanted
    fresh.each { |name| stream[:spans][name] = from }
  rescue Hikyaku::TooManyRewinds
    nil
  end

  def expected_of(stream, name)
    from = stream[:spans].fetch(name)
    (from + 1..@log.size).select do |position|
      topics, secret, = @log[position - 1]
      selections[name].call(topics) && (!secret || (topics & stream[:reads]).any?)
    end
  end

  # By name the positions of the events that it got.
  def got_by_name(stream)
    bytes = stream[:reader].connection.received
    text = (stream[:coding] == :gzip) ? (FormatReaders::Gzip.new << bytes).text : bytes.b
    text.split("\n\n").each_with_object(Hash.new { |got, name| got[name] = [] }) do |block, got|
      next if block.start_with?(":") || block.include?("event: mercure")
      names = block.lines(chomp: true).take_while { |line| line.start_with?("match") }
      names = [stream[:first]] if names.empty?
      names.each { |name| got[name] << block[/^data: (\d+)/, 1].to_i }
    end
  end

  def run_named(seed, coding)
    random = Random.new(seed)
    @engine = make_engine
    @log = []
    streams = []
    250.times do
      case random.rand(14)
      when 0..4 then publish_named(random)
      when 5
        next if streams.size > 8
        names, reads = selections.keys.sample(1 + random.rand(3), random: random), [[], %w[/a], %w[/b /c]].sample(random: random)
        reader = subscribe(matchers_named(names), reads: reads, room: random.rand(120), coding: coding, naming: true, changeable: true)
        first = names.first if names.one?
        streams << {reader: reader, names: names, reads: reads, coding: coding, first: first, spans: names.to_h { |name| [name, @log.size] }}
      when 6..8 then streams.sample(random: random)&.then { |stream| change_named(stream, random) }
      when 9..11
        reader = streams.sample(random: random)&.fetch(:reader) or next
        reader.connection.room = random.rand(200)
        @engine.writable(reader)
      else drain(max_bytes: 1 + random.rand(300))
      end
    end
    streams.each { |stream| (stream[:reader].connection.room = nil) || @engine.writable(stream[:reader]) }
    drain
    streams.sum { |stream| check_named(stream) }
  end

  def check_named(stream)
    got = got_by_name(stream)
    stream[:spans].each_key do |name|
      expected = expected_of(stream, name)
      if stream[:names].include?(name)
        assert_equal expected, got[name], "#{name} of #{stream[:spans]}"
      else
        assert_equal expected.take(got[name].size), got[name], "#{name}, which was removed, of #{stream[:spans]}"
      end
    end
    assert_empty got.keys - stream[:spans].keys
    got.sum { |_, positions| positions.size }
  end

  EngineContract.codings(self).each do |coding|
    test "random publishing, reading, blocking and changing of streams that name matchers: each gets its own, in order, once, #{coding}" do
      events = (0...15).sum do |seed|
        run_named(seed, coding)
      rescue Minitest::Assertion => error
        flunk "seed #{seed}: #{error.message}"
      end
      assert_operator events, :>, 1000
    end
  end
end
