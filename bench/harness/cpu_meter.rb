# frozen_string_literal: true

module Bench
  # The CPU that the processes of a server use, looked at again and again from a thread, in nanoseconds of the scheduler's.
  class CpuMeter
    STEP = 0.02 # seconds between two looks
    WINDOW = 0.1 # seconds of which the highest share of a core is told

    # Measures while the block runs.
    #
    # @param pids [Array<Integer>]
    # @yieldparam meter [CpuMeter]
    # @return what the block returns
    def self.run(pids)
      meter = new(pids)
      looking = Thread.new { loop { meter.look && sleep(STEP) } }
      yield meter
    ensure
      looking&.kill&.join
    end

    def initialize(pids)
      # How the kernel numbers the clock of another process, see clock_getcpuclockid(3).
      @clocks = pids.map { |pid| (~pid << 3) | 2 }
      @looks = []
      @lock = Mutex.new
      look
    end

    # @return [Float] when that was
    def look
      @lock.synchronize do
        now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        @looks << [now, @clocks.sum { |clock| Process.clock_gettime(clock) }]
        now
      end
    end

    # @param from [Float] when a look was taken
    # @param to [Float] another
    # @return [Float] seconds of CPU between the two
    def used(from, to) = at(to) - at(from)

    # @param from [Float]
    # @param to [Float]
    # @return [Float] the greatest share of a core in any {WINDOW} that begins between the two; of what is shorter, in all of it
    def highest(from, to)
      shares = between(from, to).map do |time, cpu|
        later = @looks.find { |other, _| other >= time + WINDOW } || @looks.last
        (later.first > time) ? (later.last - cpu) / [later.first - time, WINDOW].max : 0
      end
      shares.max || 0
    end

    private

    def between(from, to) = @looks.select { |time, _| time.between?(from, to) }

    def at(time) = (@looks.reverse_each.find { |look, _| look <= time } || @looks.first).last
  end
end
