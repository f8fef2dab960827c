# frozen_string_literal: true

require "rbconfig"
require_relative "../harness/scenario"
require_relative "link"

module Bench
  # Compares a link with its settings: UDP packets, both ways in turn; there and back; and TCP.
  class LinkSelfTest
    PORT = 7000
    PROBE = [RbConfig.ruby, "--disable-gems", File.expand_path("probe.rb", __dir__)].freeze
    LARGE, SMALL = 1500, 128 # bytes of an IP packet
    MAX_SPACED = 1e6 # bits a second: above it packets arrive closer together than the machine wakes up
    RATE_TOLERANCE, ROUND_TRIP_TOLERANCE, BULK_TOLERANCE = 0.02, 0.03, 0.03
    TRIPS = 20 # until a new connection of TCP has its pace, with a margin
    QUEUE = 3_000_000 # bytes: what TCP makes of a loss is not measured here
    MIN_MS = 1.0 # tolerance of a time, however short
    HEADS = 52 # bytes of IP and TCP, with time stamps

    Check = Struct.new(:link, :what, :set, :measured, :tolerance, keyword_init: true) do
      def passed? = (measured - set).abs <= tolerance

      def row = [link, what, *[set, measured, tolerance].map { |number| format("%.4g", number) }, passed? ? "ok" : "**off**"]
    end

    LINKS = {
      "64/384 kbit/s, 130 ms" => {up: 64_000, down: 384_000, delay: 130}, "750/1,500 kbit/s, 75 ms" => {up: 750_000, down: 1_500_000, delay: 75},
      "2/10 Mbit/s, 300 ms" => {up: 2e6, down: 10e6, delay: 300}, "10 Mbit/s" => {up: 10e6, down: 10e6},
      "100 Mbit/s, 5 ms" => {up: 100e6, down: 100e6, delay: 5}, "50 ms, 1 % lost" => {delay: 50, loss: 0.01}, "20 to 50 ms" => {delay: 20, jitter: 30},
      "384 kbit/s, 30 ms, set up in 250 ms after 500 ms" => {up: 384_000, down: 384_000, delay: 30, setup: 250, idle: 500}
    }.freeze

    # @param seconds [Numeric] of measuring a rate
    # @param packets [Integer] for measuring a loss
    # @param late [Integer] packets for measuring jitter
    def initialize(seconds: 2, packets: 20_000, late: 200, links: LINKS)
      @seconds = seconds
      @packets = packets
      @late = late
      @links = links
    end

    def checks = @checks ||= @links.flat_map { |name, settings| ShapedLink.run(queue: QUEUE, **settings) { |link| of(name, settings, link) } }

    def to_s = Table.markdown(["Link", "What", "Set", "Measured", "Tolerance", ""], checks.map(&:row))

    def passed? = checks.all?(&:passed?)

    # Sends packets over the link, and returns what arrived.
    def self.probe(from, to, address, *numbers, modes: %w[receive send])
      where = [address, PORT.to_s]
      Open3.popen3(*to, *PROBE, modes.first, *where) do |input, out, err, _process|
        input.close
        err.gets # it is ready
        system(*from, *PROBE, modes.last, *where, *numbers.map { |number| number.round.to_s }, exception: true)
        JSON.parse(out.read)
      end
    end

    private

    def of(name, settings, link)
      directions = {"up" => [link.load, link.server, link.host], "down" => [link.server, link.load, link.other]}
      found = directions.flat_map { |direction, ends| one_way(direction, settings, *ends) }
      found << round_trip(settings, link, found) unless settings.key?(:jitter) || settings.key?(:setup) || settings.key?(:loss)
      found.each { |check| check.link = name }
    end

    def one_way(direction, settings, from, to, address)
      rate, loss, late = settings[direction.to_sym], settings[:loss], settings.fetch(:jitter, 0)
      fixed = settings.fetch(:delay, 0) + leaving(rate)
      send = ->(count, size, gap) { self.class.probe(from, to, address, count, size, gap) }
      found = rate ? rates(direction, rate, send) << bulk(direction, rate, settings, from, to, address) : []
      # Far below the rate, and so far apart that no packet waits for another.
      apart = send.call(late.zero? ? 100 : @late, SMALL, [10_000, leaving(rate) * 2_000, late * 1_000].max)["delay_ms"]
      found << check("#{direction}: ms under way, median", fixed + late / 2.0, apart["median"], MIN_MS + late * 0.15)
      unless late.zero?
        found << check("#{direction}: ms between the least and the most under way", late, apart["max"] - apart["min"], MIN_MS + late * 0.1)
        found << check("#{direction}: packets that were overtaken", 0, send.call(2_000, SMALL, 200)["overtaken"], 0)
      end
      if settings[:setup] # each packet arrives when the line has been given up
        gaps = (settings[:idle] + settings[:setup] * 1.2) * 1_000
        found << check("#{direction}: ms under way after silence, median", fixed + settings[:setup], send.call(3, SMALL, gaps)["delay_ms"]["median"], MIN_MS)
      end
      if loss # within four standard deviations
        lost = 1 - send.call(@packets, SMALL, 50)["delay_ms"]["count"].fdiv(@packets)
        found << check("#{direction}: share that is lost", loss, lost, 4 * Math.sqrt(loss * (1 - loss) / @packets))
      end
      found
    end

    def check(what, set, measured, tolerance) = Check.new(what: what, set: set, measured: measured, tolerance: tolerance)

    # Twice as fast as the link, so that it is never idle; on a slow link also small packets all at once, which arrive one by one.
    def rates(direction, rate, send)
      large = send.call((rate * @seconds / 8 / LARGE).ceil * 2, LARGE, (LARGE * 8e6 / rate / 2).floor)
      found = [check("#{direction}: bits a second", rate, large["bytes"] * 8 / large["seconds"], rate * RATE_TOLERANCE)]
      return found if rate > MAX_SPACED
      due = SMALL * 8e3 / rate
      gaps = send.call((rate * @seconds / 8 / SMALL).ceil, SMALL, 0)["gap_ms"]
      found << check("#{direction}: ms between packets of #{SMALL} bytes, median", due, gaps["median"], due * RATE_TOLERANCE)
    end

    # The rate that TCP reaches, in bytes of IP packets.
    def bulk(direction, rate, settings, from, to, address)
      bytes = [rate * (@seconds * 3 + settings.fetch(:delay, 0) * 2 / 1000.0 * TRIPS) / 8, LARGE * 30].max.ceil
      figures = self.class.probe(from, to, address, bytes, modes: %w[sink bulk])
      measured = figures["bytes"] * 8 / figures["seconds"] * LARGE / (LARGE - HEADS)
      check("#{direction}: bits a second of a large transfer over TCP", rate, measured, rate * BULK_TOLERANCE)
    end

    # By ping where it is installed; else the sum of both ways.
    def round_trip(settings, link, found)
      set = settings.fetch(:delay, 0) * 2 + settings.values_at(:up, :down).sum { |rate| leaving(rate) }
      by, measured = pinged(link) || ["UDP", found.select { |its| its.what.end_with?("under way, median") }.sum(&:measured)]
      check("there and back: ms by #{by}, median", set, measured, [set * ROUND_TRIP_TOLERANCE, MIN_MS].max)
    end

    def pinged(link)
      out, status = Open3.capture2e(*link.load, "ping", "-n", "-c", "20", "-i", "0.2", "-s", (SMALL - 28).to_s, link.host)
      times = out.scan(/time=([\d.]+) ms/).flatten.map(&:to_f).sort
      ["ping", times[times.size / 2]] if status.success? && times.any?
    rescue Errno::ENOENT
      nil
    end

    # Milliseconds that a small packet takes to leave.
    def leaving(rate) = rate ? SMALL * 8e3 / rate : 0.0
  end
end
