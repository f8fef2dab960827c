# frozen_string_literal: true

require "socket"
require_relative "native_hub"

# What a history takes of a hub's memory: by how much a process grows that is filled with updates of one shape, over what it
# took when it had published a few, divided by the history that it may have.
class HistoryMemory
  # Updates that a history is filled with: bytes of data, topics that all updates have, topics of each alone, and how they begin.
  Shape = Struct.new(:data, :shared, :own, :prefix, :fields, :numbered, keyword_init: true) do
    def body(number)
      topics = Array.new(shared) { |i| "topic=#{prefix}shared/#{i}" } + Array.new(own) { |i| "topic=#{prefix}#{number}/#{i}" }
      "#{topics.join("&")}&data=#{"x" * data}#{fields}#{"&id=urn:update:#{number}" if numbered}"
    end
  end

  def self.shape(data: 10, shared: 1, own: 0, prefix: "https://example.com/books/", fields: "", numbered: false)
    Shape.new(data: data, shared: shared, own: own, prefix: prefix, fields: fields, numbered: numbered)
  end

  SHAPES = {
    "one topic" => shape,
    "one topic, 1 KB" => shape(data: 1_000),
    "one topic, 100 KB" => shape(data: 100_000),
    "one topic, private" => shape(fields: "&private=on"),
    "one topic, type and retry" => shape(fields: "&type=notice&retry=3000"),
    "one topic, own ids" => shape(numbered: true),
    "own topics" => shape(shared: 0, own: 1),
    "own topics, 1 KB" => shape(data: 1_000, shared: 0, own: 1),
    "own topics, 100 KB" => shape(data: 100_000, shared: 0, own: 1),
    "own topics, private, own ids, type" => shape(shared: 0, own: 1, fields: "&private=on&type=notice", numbered: true),
    "own paths" => shape(shared: 0, own: 1, prefix: "/books/"),
    "own names" => shape(shared: 0, own: 1, prefix: "Books-"),
    "ten alternates that all have" => shape(shared: 11),
    "ten own alternates" => shape(own: 10),
    "ten own alternates, 1 KB" => shape(data: 1_000, own: 10),
    "ten own alternates, paths" => shape(own: 10, prefix: "/books/"),
    "ten own alternates, names" => shape(own: 10, prefix: "Books-"),
    "ten own alternates, private, own ids, type" => shape(own: 10, fields: "&private=on&type=notice", numbered: true)
  }.freeze

  # Requests that are on their way at once, and bytes of them; of a connection, of which a server ends the oldest; and updates
  # that warm a hub.
  DEPTH = 64
  PENDING = 1_000_000
  RENEWED = 50_000
  WARM = 500
  private_constant :DEPTH, :PENDING, :RENEWED, :WARM

  # @param history [Integer] bytes
  # @param readers [Integer] subscribers of everything, who read
  def initialize(engine:, history:, readers: 0, flags: [], env: {})
    @history = history
    @hub = NativeHub.new("--history", history.to_s, "--heartbeat", "0", *flags, engine: engine, env: env)
    @head = "POST #{NativeHub::PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer #{@hub.publisher}\r\n" \
      "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: "
    @readers = Array.new(readers) { |n| reader(n) }
    @number = 0
  end

  # @param shape [Shape]
  # @param rounds [Integer] times that the history is filled
  # @return [Hash] bytes of growth in the end, the most at any time, bytes that the hub counts, and updates
  def fill(shape, rounds: 2)
    publish(shape, WARM / [shape.data / 10_000, 1].max, data: 10)
    before = @hub.memory
    most = 0
    filled = held(shape)
    chunk = (filled / 4.0).ceil
    (4 * (rounds - 1)).times do
      publish(shape, chunk)
      most = [most, @hub.memory - before].max
    end
    figures = @hub.metrics
    {before: before, growth: @hub.memory - before, most: most, counted: figures["log_bytes"].to_i, updates: figures["log_updates"].to_i}
  end

  def stop
    @readers.each(&:kill)
    @socket&.close
    @hub.stop
  end

  attr_reader :hub

  private

  # Publishes until the oldest go.
  # @return [Integer] updates that are held
  def held(shape)
    size = @history / (shape.data + 1200 + shape.own * 300) / 4 + 1
    loop do
      publish(shape, size)
      figures = @hub.metrics
      return figures["log_updates"].to_i if figures["log_updates"] < figures["publishes_total"]
    end
  end

  def publish(shape, count, data: nil)
    shape = shape.dup.tap { |small| small.data = data } if data
    connect
    count.times.each_slice([DEPTH, PENDING / (shape.data + 500)].min) do |slice|
      connect if @number % RENEWED < DEPTH
      @socket.write(slice.map { (body = shape.body(@number += 1)).then { "#{@head}#{body.bytesize}\r\n\r\n#{body}" } }.join)
      slice.size.times { expect_answer }
    end
  end

  def connect
    @socket&.close
    @socket = TCPSocket.new("127.0.0.1", @hub.port)
  end

  def expect_answer
    line = @socket.gets
    raise "refused: #{line}" unless line&.start_with?("HTTP/1.1 200")
    length = 0
    until (line = @socket.gets) == "\r\n"
      length = line[/\d+/].to_i if line.start_with?("Content-Length", "content-length")
    end
    @socket.read(length)
  end

  def reader(number)
    socket = TCPSocket.new("127.0.0.1", @hub.port)
    socket.write("GET #{NativeHub::PATH}?#{["match=*", "match=https://example.com/books/shared/0", "match_urlpattern=https://example.com/books/*"][number % 3]} HTTP/1.1\r\nHost: a\r\n\r\n")
    Thread.new { IO.copy_stream(socket, File::NULL) }
  end
end
