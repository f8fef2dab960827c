# frozen_string_literal: true

module Bench
  # Samples the CPU of a server's processes from a thread, in the scheduler's nanoseconds.
  class CpuMeter
    STEP = 0.02 # seconds between two samples
    WINDOW = 0.1 # seconds over which the highest share of a core is taken

    # Samples while the block runs, and returns its value.
    def self.run(pids)
      meter = new(pids)
      sampling = Thread.new { loop { meter.look && sleep(STEP) } }
      yield meter
    ensure
      sampling&.kill&.join
    end

    def initialize(pids)
      @clocks = pids.map { |pid| (~pid << 3) | 2 } # see clock_getcpuclockid(3)
      @samples = []
      @lock = Mutex.new
      look
    end

    # Takes a sample, and returns its time.
    def look
      @lock.synchronize do
        now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        @samples << [now, @clocks.sum { |clock| Process.clock_gettime(clock) }]
        now
      end
    end

    # Seconds of CPU between the times of two samples.
    def used(from, to) = at(to) - at(from)

    # The greatest share of a core in any {WINDOW} that begins between the two times.
    def highest(from, to)
      shares = @samples.select { |time, _| time.between?(from, to) }.map do |time, cpu|
        later = @samples.find { |other, _| other >= time + WINDOW } || @samples.last
        (later.first > time) ? (later.last - cpu) / [later.first - time, WINDOW].max : 0
      end
      shares.max || 0
    end

    private

    def at(time) = (@samples.reverse_each.find { |sample, _| sample <= time } || @samples.first).last
  end

  # The CPU of a server and the bytes on a link while clients subscribe, and while something is published to them. The link counts
  # whole Ethernet frames, acknowledgements included.
  class WireMeter
    DIRECTIONS = {"sent" => "from_server", "received" => "to_server"}.freeze

    # @param rest [Integer] milliseconds that the load rests after the clients have subscribed, again before it publishes, and when
    #   all have the messages: the counters are read in the middle of these
    def initialize(link, meter, rest)
      @link = link
      @meter = meter
      @rest = rest
      @at = {}
      note("start", 0)
    end

    # @param phase [String] of the load, which begins now
    def call(phase)
      return note("published", 0.5) if phase == "published"
      return unless phase == "connected"
      note("connected", 0.5)
      note("publishing", 1.0)
    end

    # Of "subscribe" and "publish": milliseconds of CPU, the highest share of a core, the bytes.
    def figures = {"subscribe" => between("start", "connected"), "publish" => between("publishing", "published")}

    private

    def note(name, share)
      sleep @rest * share / 1_000.0
      @at[name] = [@meter.look, @link.wire_bytes]
    end

    def between(first, last)
      (from, bytes_before), (to, bytes_after) = @at.fetch(first), @at.fetch(last)
      sent = DIRECTIONS.transform_values { |direction| bytes_after.fetch(direction) - bytes_before.fetch(direction) }
      {"cpu_ms" => @meter.used(from, to) * 1_000, "highest_share" => @meter.highest(from, to), **sent, "bytes" => sent.values.sum}
    end
  end
end
