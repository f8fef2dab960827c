# frozen_string_literal: true

require "json"
require "open3"
require_relative "../harness/build"

module Bench
  # Two networks with a link between them that has a rate, a delay and a loss: shaper.c moves the packets. There may be several at
  # once: addresses are those of their own networks.
  #
  #     load, 10.79.0.1 ── tun ── shaper ── tun ── 10.79.0.2, server
  class ShapedLink
    # It needs root, ip and /dev/net/tun.
    class Unavailable < StandardError
    end

    HOST = "10.79.0.2"
    OTHER = "10.79.0.1"
    DEVICE = "shaped"
    TUN = "/dev/net/tun"
    # A network with IPv6 says a few words of its own, and each takes its time on a slow line.
    QUIET = "for name in all default; do file=/proc/sys/net/ipv6/conf/$name/disable_ipv6; [ ! -e $file ] || echo 1 > $file; done"
    LOCK = Mutex.new # the first network that ip makes prepares a folder for all
    private_constant :QUIET, :LOCK

    class << self
      # @param settings [Hash] see {#initialize}
      # @yieldparam link [ShapedLink]
      # @return what the block returns
      # @raise [Unavailable]
      def run(**settings)
        link = new(**settings)
        link.open
        yield link
      ensure
        link&.close
      end

      # @return [String, nil] why there can be none here
      def obstacle
        return "links need root: network namespaces are made" unless Process.uid.zero?
        return "links need #{TUN}: the kernel's module tun" unless File.exist?(TUN)
        run { nil }
      rescue Unavailable => error
        error.message
      end

      # @return [Integer] another for each link of this process
      def next_number = LOCK.synchronize { @number = (@number || 0) + 1 }
    end

    # @return [Hash{String => Hash}, nil] once closed: of "up" and "down" how many packets were dropped, lost, delivered
    attr_reader :counts

    # @param up [Numeric, nil] bits a second from the load to the server; nil: no limit
    # @param down [Numeric, nil] the other way
    # @param delay [Numeric] milliseconds that a packet is under way: half a round trip
    # @param jitter [Numeric] milliseconds more, at random up to this; none overtakes another
    # @param loss [Numeric] the share of packets that is lost, either way
    # @param queue [Numeric, nil] bytes that wait at most, either way; nil: a quarter of a second, at least 100,000
    # @param setup [Numeric, nil] milliseconds that an idle line takes to be there again; goes with `idle`
    # @param idle [Numeric, nil] milliseconds without a packet, either way, after which the line is given up
    # @param turn [Numeric, nil] milliseconds after the first packet, when the rates change; goes with `factor`
    # @param factor [Numeric, nil] how many times as fast the link is from then on
    # @param seed [Integer] which are lost, and which are late
    def initialize(up: nil, down: nil, delay: 0, jitter: nil, loss: 0, queue: nil, setup: nil, idle: nil, turn: nil, factor: nil, seed: 1)
      @options = {up: up, down: down, delay: delay, jitter: jitter, loss: loss, queue: queue, setup: setup, idle: idle, turn: turn, factor: factor, seed: seed}.compact
      number = self.class.next_number
      @ends = %w[l s].map { |letter| "hks#{letter}#{Process.pid}n#{number}" }
    end

    # @return [String] the address of the server
    def host = HOST

    # @return [String] of the load
    def other = OTHER

    # @return [Array<String>] what runs a program in the server's network
    def broker = within(@ends.last)

    # @return [Array<String>] the same in the load's
    def load = within(@ends.first)

    def open
      LOCK.synchronize { @ends.each { |name| said("ip", "netns", "add", name) } }
      @ends.each { |name| said(*within(name), "sh", "-c", QUIET) }
      start
      @ends.zip([OTHER, HOST], [HOST, OTHER]) do |name, address, peer|
        said("ip", "-n", name, "address", "add", address, "peer", peer, "dev", DEVICE)
        [DEVICE, "lo"].each { |device| said("ip", "-n", name, "link", "set", device, "up") }
      end
    end

    def close
      stop
      LOCK.synchronize { @ends.each { |name| Open3.capture2e("ip", "netns", "delete", name) } }
    rescue Errno::ENOENT
      nil # then nothing was opened either
    end

    private

    def start
      flags = @options.flat_map { |name, value| ["--#{name}", value.to_s] }
      left, right = @ends
      @shaper = IO.popen([Build.program("shaper"), "--left", left, "--right", right, "--device", DEVICE, *flags, err: [:child, :out]])
      answer = @shaper.gets.to_s.strip
      raise Unavailable, "the shaper did not start: #{answer}" unless answer == "ready"
    end

    def stop
      return unless @shaper
      Process.kill("TERM", @shaper.pid)
      @counts = JSON.parse(@shaper.read)
    rescue Errno::ESRCH, JSON::ParserError
      nil # it has ended before
    ensure
      @shaper&.close
      @shaper = nil
    end

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
