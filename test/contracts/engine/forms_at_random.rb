# frozen_string_literal: true

require "stringio"
require "support/form_readers"
require "zlib"

# Compressed streams to which anything happens at any time, each beside one that is not compressed.
EngineContract.tests do
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
      all << {plain: plain, formed: formed, reader: FormReaders::Gzip.new, read: 0}
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
