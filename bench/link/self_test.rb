# frozen_string_literal: true

require_relative "../harness/markdown"
require_relative "shaped_link"

module Bench
  # Whether a link does what it is set to: packets of UDP over it, one way, both ways in turn, and TCP.
  class LinkSelfTest
    PORT = 7000
    LARGE = 1500 # bytes of an IP packet
    SMALL = 128
    MOST_SPACED = 1e6 # bits a second: above it packets come closer together than a machine wakes up

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
      "10 Mbit/s" => {up: 10e6, down: 10e6},
      "100 Mbit/s, 5 ms" => {up: 100e6, down: 100e6, delay: 5},
      "50 ms, 1 % lost" => {delay: 50, loss: 0.01}
    }.freeze

    # @param seconds [Numeric] that a rate is measured for
    # @param packets [Integer] of which the lost are counted
    def initialize(seconds: 2, packets: 20_000)
      @seconds = seconds
      @packets = packets
    end

    # @return [Array<Check>]
    def checks = @checks ||= LINKS.flat_map { |name, settings| ShapedLink.run(**settings) { |link| of(name, settings, link) } }

    # @return [String] a table
    def to_s = Markdown.table(["Link", "What", "Set", "Measured", "May differ by", ""], checks.map(&:row))

    # @return [Boolean]
    def passed? = checks.all?(&:passed?)

    private

    def of(name, settings, link)
      directions = {"up" => [link.load, link.broker, link.host], "down" => [link.broker, link.load, link.other]}
      found = directions.flat_map do |direction, (from, to, address)|
        rate = settings[direction.to_sym]
        way = ->(count, size, gap) { sent(from, to, address, count, size, gap) }
        [*(rates(direction, rate, way) if rate), delay(direction, rate, settings.fetch(:delay, 0), way),
          (loss(direction, settings[:loss], way) if settings[:loss])].compact
      end
      found.each { |check| check.link = name }
    end

    # Twice as fast as the link takes it, so that it is never idle.
    def rates(direction, rate, way)
      count = (rate * @seconds / 8 / LARGE).ceil * 2
      large = way.call(count, LARGE, (LARGE * 8e6 / rate / 2).floor)
      found = Check.new(what: "#{direction}: bits a second", set: rate, measured: large["bytes"] * 8 / large["seconds"], tolerance: rate * 0.02)
      (rate > MOST_SPACED) ? [found] : [found, spacing(direction, rate, way)]
    end

    # All at once: they come one by one.
    def spacing(direction, rate, way)
      due = SMALL * 8e3 / rate
      gaps = way.call((rate * @seconds / 8 / SMALL).ceil, SMALL, 0)["gap_ms"]
      Check.new(what: "#{direction}: ms between packets of #{SMALL} bytes, median", set: due, measured: gaps["median"], tolerance: due * 0.02)
    end

    # Far below the rate, so that none waits for another.
    def delay(direction, rate, set, way)
      leaving = rate ? SMALL * 8e3 / rate : 0
      figures = way.call(100, SMALL, [10_000, leaving * 2_000].max.round)
      Check.new(what: "#{direction}: ms under way, median", set: set + leaving, measured: figures["delay_ms"]["median"], tolerance: 1)
    end

    # Within four standard deviations.
    def loss(direction, share, way)
      arrived = way.call(@packets, SMALL, 50)["delay_ms"]["count"]
      Check.new(what: "#{direction}: share that is lost", set: share, measured: 1 - arrived.fdiv(@packets),
        tolerance: 4 * Math.sqrt(share * (1 - share) / @packets))
    end

    # @return [Hash] what arrived
    def sent(from, to, address, count, size, gap)
      where = "#{address}:#{PORT}"
      probe = Build.program("probe")
      Open3.popen3(*to, probe, "receive", where) do |input, out, err, _process|
        input.close
        err.gets # it is ready
        system(*from, probe, "send", where, count.to_s, size.to_s, gap.to_s, exception: true)
        JSON.parse(out.read)
      end
    end
  end
end
