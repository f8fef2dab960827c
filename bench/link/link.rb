# frozen_string_literal: true

require "json"
require "open3"
require_relative "../harness/build"
require_relative "../harness/dependencies"

module Bench
  # Two network namespaces with a link between them: that of the load, and that of the server. It needs root and iproute2.
  class Link
    LOCK = Mutex.new # the first network that ip makes prepares a folder for all
    private_constant :LOCK

    class << self
      # Makes the link, yields it, and removes it.
      def run(*arguments, **settings)
        link = new(*arguments, **settings)
        link.open
        yield link
      ensure
        link&.close
      end

      # Names differ within this process.
      def next_number = LOCK.synchronize { @number = @number.to_i + 1 }

      # @return [String, nil] why there can be no link here
      def obstacle
        return "links need root: network namespaces are made" unless Process.uid.zero?
        self::TRIAL.then { |trial| run(*trial) { nil } }
      rescue Unavailable => error
        error.message
      end
    end

    def initialize(prefix)
      @ends = %w[l s].map { |letter| "#{prefix}#{letter}#{Process.pid}n#{Link.next_number}" }
    end

    # The address of the server, and of the load.
    def host = self.class::ADDRESSES.last

    def other = self.class::ADDRESSES.first

    # The command that runs a program in the server's network, and in the load's.
    def server = within(@ends.last)

    def load = within(@ends.first)

    def close
      LOCK.synchronize { @ends.each { |name| Open3.capture2e("ip", "netns", "delete", name) } } # with the devices
    rescue Errno::ENOENT
      nil # nothing was opened either
    end

    private

    def make_networks = LOCK.synchronize { @ends.each { |name| ip("netns", "add", name) } }

    def bring_up(name, *devices) = devices.each { |device| ip("-n", name, "link", "set", device, "up") }

    def within(network) = ["ip", "netns", "exec", network]

    def ip(*words) = output("ip", *words)

    def output(*command)
      out, status = Open3.capture2e(*command)
      raise Unavailable, "#{command.first(4).join(" ")}: #{out.strip}" unless status.success?
      out
    rescue Errno::ENOENT
      raise Unavailable, "there is no #{command.first}: apt-get install iproute2"
    end
  end

  # A fast link: a pair of virtual Ethernet devices, and a token bucket (tbf) at either end.
  #
  #     load, 10.78.0.1 ── veth, tbf ── tbf, veth ── 10.78.0.2, server
  #
  # A bucket holds a millisecond of the rate, at least 16 KiB: enough to reach the rate when the timer is late, and a negligible part
  # of a run. Its queue holds 10 ms, at least 1.5 MB, as that of a network card.
  class EthernetLink < Link
    ADDRESSES = %w[10.78.0.1 10.78.0.2].freeze
    TRIAL = [1_000].freeze
    MIN_BURST = 16_384
    MIN_LIMIT = 1_500_000

    attr_reader :megabits

    def initialize(megabits)
      super("hkb")
      @megabits = megabits
    end

    def open
      make_networks
      ip("link", "add", "e0", "netns", @ends.first, "type", "veth", "peer", "name", "e0", "netns", @ends.last)
      burst, limit = [[bytes_per_second / 1000, MIN_BURST], [bytes_per_second / 100, MIN_LIMIT]].map { |sizes| sizes.max.to_s }
      @ends.zip(ADDRESSES) do |name, address|
        ip("-n", name, "address", "add", "#{address}/24", "dev", "e0")
        bring_up(name, "e0", "lo")
        output("tc", "-n", name, "qdisc", "add", "dev", "e0", "root", "tbf", "rate", "#{megabits}mbit", "burst", burst, "limit", limit)
      end
    end

    # Bytes that passed each shaper so far, headers included: "to_server", "from_server".
    def wire_bytes
      counts = @ends.map { |name| JSON.parse(output("tc", "-n", name, "-s", "-j", "qdisc", "show", "dev", "e0")).first.fetch("bytes") }
      %w[to_server from_server].zip(counts).to_h
    end

    def bytes_per_second = megabits * 1_000_000 / 8
  end

  # A slow link with a rate, a delay and a loss: shaper.c moves the packets between two TUN devices.
  #
  #     load, 10.79.0.1 ── tun ── shaper ── tun ── 10.79.0.2, server
  class ShapedLink < Link
    ADDRESSES = %w[10.79.0.1 10.79.0.2].freeze
    TRIAL = [].freeze
    DEVICE = "shaped"
    TUN = "/dev/net/tun"
    # A network with IPv6 sends packets of its own, which take their time on a slow link.
    NO_IPV6 = "for name in all default; do file=/proc/sys/net/ipv6/conf/$name/disable_ipv6; [ ! -e $file ] || echo 1 > $file; done"

    # Links by name: bits a second, and milliseconds of delay, which is half a round trip. Each also exists with loss.
    PROFILES = {
      "wcdma-260" => {up: 64_000, down: 384_000, delay: 130}, "wcdma-550" => {up: 64_000, down: 384_000, delay: 275},
      "weak-4g" => {up: 750_000, down: 1_500_000, delay: 75}, "satellite" => {up: 2_000_000, down: 10_000_000, delay: 300}
    }.then { |links| links.merge(links.to_h { |name, settings| ["#{name}-lossy", settings.merge(loss: 0.01)] }) }.transform_values(&:freeze).freeze

    class << self
      def obstacle = File.exist?(TUN) ? super : "links need #{TUN}: the kernel's module tun"

      # @return [Hash] settings of a link by name, see {#initialize}
      def profile(name) = PROFILES.fetch(name) { raise KeyError, "there is no link #{name}; there are #{PROFILES.keys.join(", ")}" }

      # Seconds of a round trip of an empty packet.
      def round_trip(name) = profile(name)[:delay] * 2 / 1000.0

      # "64 kbit/s up, 384 kbit/s down, 260 ms of round trip"
      def describe(name)
        settings = profile(name)
        up, down = settings.values_at(:up, :down).map { |bits| (bits >= 1_000_000) ? "#{format("%.3g", bits / 1e6)} Mbit/s" : "#{bits / 1000} kbit/s" }
        "#{up} up, #{down} down, #{settings[:delay] * 2} ms of round trip#{", #{(settings[:loss] * 100).round} % of the packets lost" if settings[:loss]}"
      end
    end

    # Once closed: the packets of "up" and "down" that were dropped, lost and delivered.
    attr_reader :counts

    # @param settings [Hash] options of shaper.c: `up:` and `down:` in bits a second, `delay:` and `jitter:` in milliseconds, `loss:` as
    #   a share of the packets, `queue:` in bytes, `setup:` and `idle:`, `turn:` and `factor:`, `seed:`
    def initialize(**settings)
      super("hks")
      @settings = settings.compact
    end

    def open
      make_networks
      @ends.each { |name| output(*within(name), "sh", "-c", NO_IPV6) }
      left, right = @ends
      flags = @settings.flat_map { |name, value| ["--#{name}", value.to_s] }
      @shaper = IO.popen([Build.program("shaper"), "--left", left, "--right", right, "--device", DEVICE, *flags, err: [:child, :out]])
      answer = @shaper.gets.to_s.strip
      raise Unavailable, "the shaper did not start: #{answer}" unless answer == "ready"
      @ends.zip(ADDRESSES, ADDRESSES.reverse) do |name, address, peer|
        ip("-n", name, "address", "add", address, "peer", peer, "dev", DEVICE)
        bring_up(name, DEVICE, "lo")
      end
    end

    def close
      stop
      super
    end

    private

    def stop
      return unless @shaper
      Process.kill("TERM", @shaper.pid)
      @counts = JSON.parse(@shaper.read)
    rescue Errno::ESRCH, JSON::ParserError
      nil # it ended before
    ensure
      @shaper&.close
      @shaper = nil
    end
  end
end
