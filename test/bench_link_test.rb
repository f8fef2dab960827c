# frozen_string_literal: true

require "test_helper"
require "support/lane_driver"
require_relative "../bench/link/self_test"

class BenchLinkTest < Minitest::Test
  SLOW = 64_000 # bits a second: 1,000 bytes take 125 ms to leave

  test "packets leave one after another at the rate, and are under way" do
    assert_equal [[0, 0, 155.0], [1, 0, 280.0], [2, 0, 1_155.0]], lane([[0, 1_000], [0, 1_000], [1_000, 1_000]], bits: SLOW, delay: 30).packets
  end

  test "what is beyond the queue is dropped, and lost packets take their time all the same" do
    out = lane([[0, 1_000]] * 5, bits: SLOW, queue: 3_000)
    assert_equal [[0, 1, 2], [2, 0]], [numbers(out), out.dropped]
    out = lane(Array.new(200) { [0, 1_000] }, bits: SLOW, loss: 0.3)
    assert_equal [200, 0], [out.packets.size + out.lost.first, out.dropped.first]
    assert_in_delta 60, out.lost.first, 25
    out.packets.each { |number, _, at| assert_in_delta 125 * (number + 1), at, 0.001 }
  end

  test "jitter delays within its bounds, differs, and lets none overtake another" do
    apart = lane(Array.new(500) { |number| [number * 100, 100] }, delay: 20, jitter: 50)
    times = apart.packets.map { |number, _, at| at - number * 100 }
    assert_operator times.min, :>=, 20
    assert_operator times.max, :<, 70
    assert_in_delta 45, times.sum / times.size, 4
    assert_operator times.max - times.min, :>, 45

    close = lane(Array.new(500) { |number| [number, 100] }, delay: 20, jitter: 50)
    assert_equal (0...500).to_a, numbers(close)
    assert_equal close.packets.map(&:last).sort, close.packets.map(&:last)
  end

  test "what is lost depends on the seed alone" do
    packets = Array.new(300) { |number| [number, 100] }
    assert_equal lane(packets, loss: 0.1, seed: 7).packets, lane(packets, loss: 0.1, seed: 7).packets
    refute_equal numbers(lane(packets, loss: 0.1, seed: 7)), numbers(lane(packets, loss: 0.1, seed: 8))
    assert_equal numbers(lane(packets, loss: 0.1, seed: 7)), numbers(lane(packets, loss: 0.1, delay: 50, seed: 7))
  end

  test "the first packet waits until the line is there, and what follows waits behind it" do
    out = lane([[0, 1_000], [10, 1_000], [600, 1_000]], bits: SLOW, setup: 250, idle: 1_000)
    assert_equal [375.0, 500.0, 725.0], out.packets.map(&:last)
  end

  test "a line is given up after so long without a packet in either direction, counted from when the last has left" do
    idle = {bits: SLOW, setup: 250, idle: 1_000}
    used = 375.0 # the first has left
    assert_equal [used, used + 999 + 125], lane([[0, 1_000], [used + 999, 1_000]], **idle).packets.map(&:last)
    assert_equal [used, used + 1_000 + 375], lane([[0, 1_000], [used + 1_000, 1_000]], **idle).packets.map(&:last)

    both = lane([[0, 1_000, 0], [used + 900, 1_000, 1], [used + 1_900, 1_000, 0]], **idle)
    assert_equal [[0, 0, used], [2, 0, used + 1_900 + 125], [1, 1, used + 900 + 125]], both.packets
  end

  test "what waits for the line takes no more of the queue than its bytes" do
    out = lane([[0, 1_000]] * 4, bits: SLOW, queue: 3_000, setup: 60_000, idle: 1_000)
    assert_equal [[0, 1, 2], 1], [numbers(out), out.dropped.first]
  end

  test "without a rate a line is set up all the same" do
    assert_equal [280.0, 280.0, 330.0], lane([[0, 1_000], [10, 1_000], [300, 1_000]], delay: 30, setup: 250, idle: 1_000).packets.map(&:last)
  end

  test "a rate that changes holds for what waits as well" do
    packets = [[0, 1_000], [0, 1_000], [0, 1_000], [1_000, 1_000]]
    assert_equal [155.0, 280.0, 405.0, 1_155.0], lane(packets, bits: SLOW, delay: 30).packets.map(&:last)
    # The second is half gone at 187.5 ms; the fourth is put when the line has changed.
    assert_equal [155.0, 467.5, 967.5, 1_530.0], lane([*packets[0, 3], [1_000, 1_000]], bits: SLOW, delay: 30, turn: 187.5, factor: 0.25).packets.map(&:last)
    assert_equal [155.0, 233.125, 264.375, 1_061.25], lane(packets, bits: SLOW, delay: 30, turn: 187.5, factor: 4).packets.map(&:last)
  end

  test "links have names, each also with loss" do
    assert_equal %w[wcdma-260 wcdma-550 weak-4g satellite].flat_map { |name| [name, "#{name}-lossy"] }.sort, Bench::ShapedLink::PROFILES.keys.sort
    assert_equal({up: 64_000, down: 384_000, delay: 130, loss: 0.01}, Bench::ShapedLink.profile("wcdma-260-lossy"))
    assert_in_delta 0.26, Bench::ShapedLink.round_trip("wcdma-260")
    assert_equal "2 Mbit/s up, 10 Mbit/s down, 600 ms of round trip, 1 % of the packets lost", Bench::ShapedLink.describe("satellite-lossy")
    assert_match(/there is no link dial-up; there are .*weak-4g/, assert_raises(KeyError) { Bench::ShapedLink.profile("dial-up") }.message)
  end

  test "settings that contradict each other are told in a line" do
    {%w[--setup 100] => "--setup and --idle go together", %w[--jitter -1] => "rates, delay and jitter cannot be negative",
     %w[--turn 100] => "--turn and --factor go together", %w[--turn -1 --factor 1] => "--turn and --factor cannot be negative",
     %w[--setup -1 --idle -1] => "--setup and --idle cannot be negative"}.each do |flags, complaint|
      _out, err, status = Open3.capture3(Bench::Build.program("shaper"), "--left", "a", "--right", "b", *flags)
      assert_equal ["shaper: #{complaint} (see shaper --help)\n", 2], [err, status.exitstatus]
    end
  end

  # Without root or TUN there is no link, and a reason.
  test "a real link keeps to jitter and set-up, there and back" do
    next assert_match(/root|ip|tun/, Bench::ShapedLink.obstacle) if Bench::ShapedLink.obstacle
    links = {"late" => {delay: 20, jitter: 20}, "given up" => {delay: 20, setup: 100, idle: 200}, "plain" => {up: 2_000_000, delay: 30}}
    late, given_up, plain = links.map { |link| Thread.new { Bench::LinkSelfTest.new(seconds: 0.2, late: 20, links: [link].to_h).checks } }.map(&:value)

    # What they come to is the machine's affair; whether they can be made, and how far they are off at least, is the code's.
    assert_equal [6, 4, 5], [late, given_up, plain].map(&:size)
    assert_equal [0, 0], late.select { |check| check.what.end_with?("overtaken") }.map(&:measured)
    assert_equal [true, true], late.select { |check| check.what.end_with?("median") }.map { |check| check.measured >= 20 }
    assert_equal [true, true], given_up.select { |check| check.what.include?("after silence") }.map { |check| check.measured >= check.set - 1 }
    rates = plain.select { |check| check.what.include?("bits a second") }
    assert_equal [true, true], rates.map { |check| check.measured.between?(200_000, 2_100_000) }
    assert_match(/there and back: ms by (ping|UDP), median/, plain.last.what)
  end

  test "several links at once have networks of their own, with the same addresses" do
    next assert_match(/root|ip|tun/, Bench::ShapedLink.obstacle) if Bench::ShapedLink.obstacle
    waits = [10, 40].map do |delay|
      Thread.new { Bench::ShapedLink.run(delay: delay) { |link| Bench::LinkSelfTest.probe(link.load, link.server, link.host, 20, 500, 1_000) } }
    end
    near, far = waits.map { |thread| thread.value["delay_ms"]["min"] }
    assert_equal [true, true], [near.between?(10, 40), far >= 40]
    refute_match(/hks[ls]#{Process.pid}/, `ip netns list`)
  end

  private

  def lane(packets, **settings) = LaneDriver.run(packets, **settings)

  # Of what came out of the first.
  def numbers(out) = out.packets.filter_map { |number, lane, _| number if lane.zero? }
end
