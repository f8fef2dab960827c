# frozen_string_literal: true

require "json"
require "open3"

module Bench
  # Two networks with a link of a given rate between them: namespaces, a pair of virtual Ethernet devices, and a token bucket
  # (tbf) at either end. What a broker sends and what it gets is each limited to the rate, as by a cable.
  #
  #     load, 10.78.0.1 ── veth, tbf ── tbf, veth ── 10.78.0.2, broker
  #
  # A bucket holds a millisecond of the rate, at least 16 KiB: enough for the shaper to reach its rate when its timer
  # is late, and next to nothing of a run. What waits for it has room for 10 ms, at least 1.5 MB: a network card's queue.
  class Link
    # It needs root, ip and tc.
    class Unavailable < StandardError
    end

    HOST = "10.78.0.2"
    OTHER = "10.78.0.1"
    BITS = 8
    LEAST_BURST = 16_384
    LEAST_LIMIT = 1_500_000

    class << self
      # @param megabits [Integer] a second, each way
      # @yieldparam link [Link]
      # @return what the block returns
      # @raise [Unavailable]
      def run(megabits)
        link = new(megabits)
        link.open
        yield link
      ensure
        link&.close
      end

      # @return [String, nil] why there can be none here
      def obstacle
        return "links need root: network namespaces are made" unless Process.uid.zero?
        run(1000) { nil }
      rescue Unavailable => error
        error.message
      end
    end

    # @return [Integer]
    attr_reader :megabits

    def initialize(megabits)
      @megabits = megabits
      @ends = %w[l b].map { |letter| "hkb#{letter}#{Process.pid}" } # the load's, the broker's: networks and devices have these names
    end

    # @return [String] the address of the broker
    def host = HOST

    # @return [Array<String>] what runs a program in the broker's network
    def broker = within(@ends.last)

    # @return [Array<String>] the same in the load's
    def load = within(@ends.first)

    def open
      @ends.each { |name| said("ip", "netns", "add", name) }
      said("ip", "link", "add", @ends.first, "netns", @ends.first, "type", "veth", "peer", "name", @ends.last, "netns", @ends.last)
      @ends.zip([OTHER, HOST]) do |name, address|
        said("ip", "-n", name, "address", "add", "#{address}/24", "dev", name)
        [name, "lo"].each { |device| said("ip", "-n", name, "link", "set", device, "up") }
        said("tc", "-n", name, "qdisc", "add", "dev", name, "root", "tbf", "rate", "#{megabits}mbit", "burst", burst.to_s, "limit", limit.to_s)
      end
    end

    def close
      @ends.each { |name| Open3.capture2e("ip", "netns", "delete", name) } # with the devices
    rescue Errno::ENOENT
      nil # then nothing was opened either
    end

    # Bytes that went through each shaper so far, headers and all, as on the wire.
    #
    # @return [Hash{String => Integer}] "to_broker", "from_broker"
    def wire_bytes
      counts = @ends.map { |name| JSON.parse(said("tc", "-n", name, "-s", "-j", "qdisc", "show", "dev", name)).first.fetch("bytes") }
      %w[to_broker from_broker].zip(counts).to_h
    end

    # @return [Integer] bytes a second
    def bytes_per_second = megabits * 1_000_000 / BITS

    private

    def burst = [bytes_per_second / 1000, LEAST_BURST].max

    def limit = [bytes_per_second / 100, LEAST_LIMIT].max

    def within(network) = ["ip", "netns", "exec", network]

    def said(*command)
      out, status = Open3.capture2e(*command)
      raise Unavailable, "#{command.first(4).join(" ")}: #{out.strip}" unless status.success?
      out
    rescue Errno::ENOENT
      raise Unavailable, "there is no #{command.first}: apt-get install iproute2"
    end
  end
end
