# frozen_string_literal: true

require "test_helper"
require "contracts/broker_contract"
require "hikyaku/broker/ruby_engine"
require "support/crash_simulation/power_cut"
require "support/crash_simulation/recording_files"

# What was acknowledged as synced is there after a loss of power at any time, until its FREE was acknowledged as synced; then it does
# not come back.
class RubyEnginePowerCutTest < Minitest::Test
  include BrokerContract::Driving

  Wire = BrokerContract::Wire
  Journal = Hikyaku::Log::Journal
  # What may be relied on at a time: payloads that must be there, and those that must not.
  Promise = Struct.new(:kept, :gone)

  def new_engine(**options)
    @files = CrashSimulation::RecordingFiles.new(options[:storage]) if options[:storage]
    Hikyaku::Broker::RubyEngine.new(files: @files, **options)
  end

  3.times do |seed|
    test "no loss of power loses what was synced, or brings back what was done with (#{seed})" do
      random = Random.new(seed)
      begin_engine(storage: true, segment_bytes: BrokerContract::SEGMENT, max_crashes: 60_000)
      work(random, 300)
      assert_operator stats[:copied], :>, 0
      assert_operator @files.calls.count { |call, _| call == :unlink }, :>, 2
      cuts = [*Array.new(40) { random.rand(@files.calls.size) }, @files.calls.size].sort
      assert_empty complaints(cuts, random)
    end
  end

  private

  def name_of(payload) = payload[/\S+/]

  def work(random, turns)
    @kept = {}
    @gone = {}
    sender = client
    reader = client.receives("q", credit: 1000, lease: 1_000_000)
    held = []
    turns.times do |i|
      payloads = Array.new(1 + random.rand(4)) { |n| "#{i}-#{n} ".ljust(200 + random.rand(3000), ".") }
      payloads.each { |payload| sender.say(Wire.send_message(to: left?(random, i) ? "left" : "q", payload: payload, level: 2)) }
      settle
      payloads.each { |payload| @kept[payload] = true }
      note
      held.concat(reader.pushes)
      take_care_of(random, reader, held)
      wait(0.01)
    end
  end

  # Some segments keep a few messages, others none: those go before older ones.
  def left?(random, turn) = (turn / 50).even? && random.rand(15).zero?

  def take_care_of(random, reader, held)
    freed = held.shift(random.rand(5) + held.size / 25)
    freed.each { |push| @kept.delete(push.payload) }
    note
    freed.each { |push| random.rand(5).zero? ? reader.say(Wire.nack(delivery: push.id)) : reader.say(Wire.free(first: push.id, level: 2)) }
    back = reader.pushes
    settle
    (freed.map(&:payload) - back.map(&:payload)).each { |payload| @gone[payload] = true }
    back.each { |push| @kept[push.payload] = true }
    held.concat(back)
    note
  end

  def note = @files.note(Promise.new(@kept.keys, @gone.keys))

  def complaints(cuts, random)
    disk = CrashSimulation::PowerCut.new
    promise = Promise.new([], [])
    at = 0
    cuts.flat_map do |cut|
      while at < cut
        call = @files.calls[at]
        (call.first == :note) ? promise = call.last : disk.apply(call)
        at += 1
      end
      broken(disk.files(random), promise).map { |sentence| "after #{cut} calls: #{sentence}" }
    end
  end

  def broken(files, promise)
    Dir.mktmpdir("hikyaku-broker-") do |folder|
      files.each { |name, bytes| File.binwrite(File.join(folder, name), bytes) }
      engine = Hikyaku::Broker::RubyEngine.new(storage: folder, open: true, segment_bytes: BrokerContract::SEGMENT, now: @now, wall: @wall)
      there = engine.instance_variable_get(:@parts).messages.map(&:content)
      engine.abort
      (promise.kept - there).map { |payload| "#{name_of(payload)} is lost" } + (promise.gone & there).map { |payload| "#{name_of(payload)} has come back" } +
        there.tally.select { |_, count| count > 1 }.map { |payload, _| "#{name_of(payload)} is there twice" }
    end
  rescue Hikyaku::Error => error
    ["it does not open: #{error.message}"]
  end
end
