# frozen_string_literal: true

require_relative "../harness/markdown"
require_relative "shaped_link"

module Bench
  # Whether a link does what it is set to: packets of UDP over it, one way, both ways in turn; there and back; and TCP.
  class LinkSelfTest
    PORT = 7000
    LARGE = 1500 # bytes of an IP packet
    SMALL = 128
    MOST_SPACED = 1e6 # bits a second: above it packets come closer together than a machine wakes up
    OF_PACKETS = 0.02 # of the rate or time that was set
    OF_ROUND_TRIP = 0.03
    OF_BULK = 0.03
    TRIPS = 20 # until a new connection of TCP has its pace, with a margin
    # Longer than the measurements use: what TCP makes of a loss is not what is measured here.
    QUEUE = 3_000_000 # bytes
    LEAST_MS = 1.0 # that a time may differ by, however short it is
    HEADS = 52 # bytes of IP and TCP, with time stamps
    ECHO_HEADS = 28 # of IP and ICMP

    # What was set and what came out, and by how much the two may differ.
    Check = Struct.new(:link, :what, :set, :measured, :tolerance, keyword_init: true) do
      # @return [Boolean]
      def passed? = (measured - set).abs <= tolerance

      # @return [Array<String>]
      def row = [link, what, *[set, measured, tolerance].map { |number| format("%.4g", number) }, passed? ? "ok" : "**off**"]
    end

    # Links as the measurements use them, and slow ones, where a packet takes long to leave.
    LINKS = {
      "64/384 kbit/s, 130 ms" => {up: 64_000, down: 384_000, delay: 130},
      "750/1,500 kbit/s, 75 ms" => {up: 750_000, down: 1_500_000, delay: 75},
      "2/10 Mbit/s, 300 ms" => {up: 2e6, down: 10e6, delay: 300},
      "10 Mbit/s" => {up: 10e6, down: 10e6},
      "100 Mbit/s, 5 ms" => {up: 100e6, down: 100e6, delay: 5},
      "50 ms, 1 % lost" => {delay: 50, loss: 0.01},
      "20 to 50 ms" => {delay: 20, jitter: 30},
      "384 kbit/s, 30 ms, set up in 250 ms after 500 ms" => {up: 384_000, down: 384_000, delay: 30, setup: 250, idle: 500}
    }.freeze

    # @param seconds [Numeric] that a rate is measured for
    # @param packets [Integer] of which the lost are counted
    # @param late [Integer] packets of which it is looked how late they are, where that differs
    # @param links [Hash{String => Hash}] settings by name, see {ShapedLink#initialize}
    def initialize(seconds: 2, packets: 20_000, late: 200, links: LINKS)
      @seconds = seconds
      @packets = packets
      @late = late
      @links = links
    end

    # @return [Array<Check>]
    def checks = @checks ||= @links.flat_map { |name, settings| ShapedLink.run(queue: QUEUE, **settings) { |link| of(name, settings, link) } }

    # @return [String] a table
    def to_s = Markdown.table(["Link", "What", "Set", "Measured", "May differ by", ""], checks.map(&:row))

    # @return [Boolean]
    def passed? = checks.all?(&:passed?)

    private

    def of(name, settings, link)
      directions = {"up" => [link.load, link.broker, link.host], "down" => [link.broker, link.load, link.other]}
      found = directions.flat_map { |direction, ends| one_way(direction, settings, *ends) }
      found << round_trip(settings, link, found) unless settings.key?(:jitter) || settings.key?(:setup) || settings.key?(:loss)
      found.each { |check| check.link = name }
    end

    def one_way(direction, settings, from, to, address)
      rate = settings[direction.to_sym]
      way = ->(count, size, gap) { sent(from, to, address, count, size, gap) }
      found = rate ? rates(direction, rate, way) << bulk(direction, rate, settings, from, to, address) : []
      found << delay(direction, rate, settings, way)
      found.concat(jitter(direction, settings, way)) if settings[:jitter]
      found << setup(direction, rate, settings, way) if settings[:setup]
      found << loss(direction, settings[:loss], way) if settings[:loss]
      found
    end

    # Twice as fast as the link takes it, so that it is never idle.
    def rates(direction, rate, way)
      count = (rate * @seconds / 8 / LARGE).ceil * 2
      large = way.call(count, LARGE, (LARGE * 8e6 / rate / 2).floor)
      found = Check.new(what: "#{direction}: bits a second", set: rate, measured: large["bytes"] * 8 / large["seconds"], tolerance: rate * OF_PACKETS)
      (rate > MOST_SPACED) ? [found] : [found, spacing(direction, rate, way)]
    end

    # All at once: they come one by one.
    def spacing(direction, rate, way)
      due = SMALL * 8e3 / rate
      gaps = way.call((rate * @seconds / 8 / SMALL).ceil, SMALL, 0)["gap_ms"]
      Check.new(what: "#{direction}: ms between packets of #{SMALL} bytes, median", set: due, measured: gaps["median"], tolerance: due * OF_PACKETS)
    end

    # What TCP makes of it, in bytes of IP packets.
    def bulk(direction, rate, settings, from, to, address)
      round_trip = settings.fetch(:delay, 0) * 2 / 1000.0
      bytes = [rate * (@seconds * 3 + round_trip * TRIPS) / 8, LARGE * 30].max.ceil
      figures = received(Build.program("bulk"), from, to, address, bytes)
      measured = figures["bytes"] * 8 / figures["seconds"] * LARGE / (LARGE - HEADS)
      Check.new(what: "#{direction}: bits a second of a large transfer over TCP", set: rate, measured: measured, tolerance: rate * OF_BULK)
    end

    # Far below the rate, and so far apart that none waits for another.
    def delay(direction, rate, settings, way)
      most = settings.fetch(:jitter, 0)
      figures = way.call(most.zero? ? 100 : @late, SMALL, [10_000, leaving(rate) * 2_000, most * 1_000].max.round)
      Check.new(what: "#{direction}: ms under way, median", set: settings.fetch(:delay, 0) + leaving(rate) + most / 2.0,
        measured: figures["delay_ms"]["median"], tolerance: LEAST_MS + most * 0.15)
    end

    # Of packets far apart how much the times differ; of those close together, whether one overtook another.
    def jitter(direction, settings, way)
      set = settings[:jitter]
      apart = way.call(@late, SMALL, set * 1_000)["delay_ms"]
      [Check.new(what: "#{direction}: ms between the least and the most under way", set: set, measured: apart["max"] - apart["min"],
        tolerance: LEAST_MS + set * 0.1),
        Check.new(what: "#{direction}: packets that were overtaken", set: 0, measured: way.call(2_000, SMALL, 200)["overtaken"], tolerance: 0)]
    end

    # Each comes when the line has been given up: that is counted from when the last one has left.
    def setup(direction, rate, settings, way)
      figures = way.call(3, SMALL, (settings[:idle] + settings[:setup] * 1.2) * 1_000)
      Check.new(what: "#{direction}: ms under way after silence, median", set: settings.fetch(:delay, 0) + settings[:setup] + leaving(rate),
        measured: figures["delay_ms"]["median"], tolerance: LEAST_MS)
    end

    # Within four standard deviations.
    def loss(direction, share, way)
      arrived = way.call(@packets, SMALL, 50)["delay_ms"]["count"]
      Check.new(what: "#{direction}: share that is lost", set: share, measured: 1 - arrived.fdiv(@packets),
        tolerance: 4 * Math.sqrt(share * (1 - share) / @packets))
    end

    # By ping where there is one; else what both ways take together.
    def round_trip(settings, link, found)
      set = settings.fetch(:delay, 0) * 2 + settings.values_at(:up, :down).sum { |rate| leaving(rate) }
      by, measured = pinged(link) || ["UDP", found.select { |check| check.what.end_with?("under way, median") }.sum(&:measured)]
      Check.new(what: "there and back: ms by #{by}, median", set: set, measured: measured, tolerance: [set * OF_ROUND_TRIP, LEAST_MS].max)
    end

    # @return [Array(String, Float), nil]
    def pinged(link)
      out, status = Open3.capture2e(*link.load, "ping", "-n", "-c", "20", "-i", "0.2", "-s", (SMALL - ECHO_HEADS).to_s, link.host)
      times = out.scan(/time=([\d.]+) ms/).flatten.map(&:to_f).sort
      ["ping", times[times.size / 2]] if status.success? && times.any?
    rescue Errno::ENOENT
      nil
    end

    # @return [Float] milliseconds that a small packet takes to leave
    def leaving(rate) = rate ? SMALL * 8e3 / rate : 0.0

    # @return [Hash] what arrived
    def sent(from, to, address, count, size, gap) = received(Build.program("probe"), from, to, address, count, size, gap.round)

    def received(program, from, to, address, *numbers)
      where = "#{address}:#{PORT}"
      Open3.popen3(*to, program, "receive", where) do |input, out, err, _process|
        input.close
        err.gets # it is ready
        system(*from, program, "send", where, *numbers.map(&:to_s), exception: true)
        JSON.parse(out.read)
      end
    end
  end
end
