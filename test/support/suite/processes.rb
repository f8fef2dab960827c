# frozen_string_literal: true

require "io/wait"
require "rbconfig"

module Suite
  # All processes of a run: those that have its mark in their environment, and their descendants. A second process watches over them, and ends
  # them when the run is over, also when it was killed. Some programs (nginx, PostgreSQL) overwrite their environment, or leave their parent:
  # so it is noted every second which there are.
  #
  # It needs /proc. Without it nothing is ended.
  class Processes
    NAME = "HIKYAKU_TEST_RUN"
    EACH = 1 # seconds
    GRACE = 3 # seconds between TERM and KILL
    # One process: its number, and when it began, as numbers are used again.
    Known = Struct.new(:pid, :began)
    private_constant :NAME, :EACH, :GRACE, :Known

    # @param mark [String]
    def initialize(mark = Random.urandom(8).unpack1("H*"))
      @mark = mark
      @known = {}
    end

    # @return [Hash{String => String}] of every process of the run
    def environment = {NAME => @mark}

    # Starts the process that watches.
    #
    # @return [void]
    def watch
      from, @to = IO.pipe
      code = "Suite::Processes.new(ARGV.first).end_after($stdin)"
      @watcher = Process.spawn({NAME => nil, "RUBYOPT" => nil}, RbConfig.ruby, "--disable-gems", "-r", __FILE__, "-e", code, @mark, in: from, pgroup: true)
      from.close
    end

    # The run is over: ends what is left of it.
    #
    # @return [void]
    def close
      @to.close
      Process.wait(@watcher)
    end

    # @param input [IO] which ends with the run
    # @return [void]
    def end_after(input)
      note until input.wait_readable(EACH)
      %w[TERM KILL].each do |signal|
        deadline = now + GRACE
        signalled = []
        while note.any? && now < deadline
          (@known.values - signalled).each { |known| kill(signal, known.pid) }
          signalled |= @known.values
          sleep 0.05
        end
      end
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def kill(name, pid)
      Process.kill(name, pid)
    rescue Errno::ESRCH, Errno::EPERM
      nil
    end

    # @return [Hash{Integer => Known}] those that there are now
    def note
      all = snapshot
      @known.select! { |pid, known| all[pid]&.last == known.began }
      all.each { |pid, (_, began)| @known[pid] ||= Known.new(pid, began) if marked?(pid) }
      loop do
        more = all.select { |pid, (parent, _)| @known.key?(parent) && !@known.key?(pid) && pid != Process.pid }
        break @known if more.empty?
        more.each { |pid, (_, began)| @known[pid] = Known.new(pid, began) }
      end
    end

    # @return [Hash{Integer => Array(Integer, String)}] the parent of each process, and when it began; without those that have ended and are not waited for
    def snapshot
      Dir.glob("/proc/[0-9]*/stat").filter_map do |path|
        fields = File.read(path).rpartition(") ").last.split
        [path[/\d+/].to_i, [fields[1].to_i, fields[19]]] unless fields[0] == "Z"
      rescue SystemCallError
        nil
      end.to_h
    end

    def marked?(pid)
      pid != Process.pid && File.binread("/proc/#{pid}/environ").include?("#{NAME}=#{@mark}")
    rescue SystemCallError
      false
    end
  end
end
