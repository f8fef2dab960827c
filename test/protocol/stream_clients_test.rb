# frozen_string_literal: true

require "hikyaku/client/event_source"
require "support/protocol_test"
require "support/snippets"

# Our client in Ruby on streams in every format: docs/streams.md.
class Protocol::StreamClientsTest < Protocol::Test
  FORMATS = %i[events msgpack].product(%i[identity gzip]).freeze
  # The engine in Ruby answers without a coding.
  COMPRESSES = HubServer::ENGINE != "ruby"

  def teardown
    @source&.close
    super
  end

  # @return [Hikyaku::EventSource] on this test's topic
  def source(**settings)
    skip_unless_available(headers: "zlib.h") if settings[:coding] == :gzip && COMPRESSES && !hub.offers?(:events, :gzip)
    @source = Hikyaku::EventSource.new("http://127.0.0.1:#{server.port}#{server.path}", params: {match: topic}, **settings)
  end

  FORMATS.each do |format, coding|
    test "what was missed and what comes are read, each at once, as #{format} in #{coding}" do
      ids = [publish(topic, "a\nb"), publish(topic, "é", type: "note", id: "urn:#{topic}")]
      seen = []
      source(format: format, coding: coding, last_event_id: "earliest").each do |event|
        seen << event.to_a unless event.type == "mercure"
        break if seen.size == 5
        ids << publish(topic, "live #{seen.size}") if seen.size > 1
      end
      assert_equal [["message", "a\nb", ids[0]], ["note", "é", ids[1]], *(2..4).map { |i| ["message", "live #{i}", ids[i]] }], seen
      type = {events: "text/event-stream", msgpack: "application/vnd.msgpack"}[format]
      assert_equal [type, ("gzip" if coding == :gzip && COMPRESSES)], @source.response_headers.values_at("content-type", "content-encoding")
    end

    test "who comes back goes on where it was, and is told of a gap, as #{format} in #{coding}" do
      first = publish(topic, "first")
      publish(topic, "second")
      event = source(format: format, coding: coding, last_event_id: first).first
      assert_equal "second", event.data
      publish(topic, "third")
      assert_equal ["third"], @source.first(1).map(&:data)
      gap = source(format: format, coding: coding, last_event_id: "urn:uuid:unknown").first
      assert_equal ["mercure", "gap"], [gap.type, JSON.parse(gap.data)["type"]]
    end
  end

  # Where the example's puts is.
  class Reader
    attr_reader :lines

    def initialize = @lines = []

    def puts(line) = @lines << line
  end

  test "the example of docs/streams.md reads what is published" do
    reader = Reader.new
    code = Snippets.of("docs/streams.md").find { |snippet| snippet.language == "ruby" }.code
    code = code.sub("http://127.0.0.1:3030/.well-known/mercure", "http://127.0.0.1:#{server.port}#{server.path}").sub("/books/1", topic)
    thread = Thread.new { reader.instance_eval(code) }
    ids = []
    eventually do
      ids << publish(topic, "a book", type: "new") # until it has subscribed it misses them
      reader.lines.any?
    end
    assert_includes ids.map { |id| "#{id} new a book" }, reader.lines.first
  ensure
    thread&.kill&.join
  end
end
