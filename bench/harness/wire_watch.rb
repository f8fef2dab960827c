# frozen_string_literal: true

require_relative "cpu_meter"

module Bench
  # What a server uses of its core and of a link while clients come, and while something is published to them. The link
  # counts whole Ethernet frames, acknowledgements and all.
  class WireWatch
    DIRECTIONS = {"sent" => "from_broker", "received" => "to_broker"}.freeze

    # @param link [Link]
    # @param meter [CpuMeter]
    # @param rest [Integer] milliseconds that the load rests after clients have come, again before it publishes, and when all have
    #   it: the link's counters are read in the midst of these
    def initialize(link, meter, rest)
      @rest = rest
      @link = link
      @meter = meter
      @at = {}
      note("start")
    end

    # To be called when a phase of the load begins.
    #
    # @param phase [String]
    # @return [void]
    def call(phase)
      case phase
      when "connected"
        after(0.5) { note("connected") } # the publisher comes when they have rested once
        after(1.0) { note("publishing") }
      when "published"
        after(0.5) { note("published") }
      end
    end

    # @return [Hash] "subscribe" and "publish", of each the CPU in milliseconds, the highest share of a core in
    #   {CpuMeter::WINDOW} seconds, and the bytes that the server has sent and received
    def figures = {"subscribe" => between("start", "connected"), "publish" => between("publishing", "published")}

    private

    # Later by this share of the rest.
    def after(share)
      sleep @rest * share / 1_000.0
      yield
    end

    def note(name) = @at[name] = [@meter.look, @link.wire_bytes]

    def between(first, last)
      (from, bytes_before), (to, bytes_after) = @at.fetch(first), @at.fetch(last)
      sent = DIRECTIONS.transform_values { |direction| bytes_after.fetch(direction) - bytes_before.fetch(direction) }
      {"cpu_ms" => @meter.used(from, to) * 1_000, "highest_share" => @meter.highest(from, to), **sent, "bytes" => sent.values.sum}
    end
  end
end
