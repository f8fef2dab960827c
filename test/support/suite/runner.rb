# frozen_string_literal: true

require "etc"
require "tempfile"
require_relative "part"
require_relative "processes"

module Suite
  # Runs parts in processes of their own, keeps their output apart, and ends with a table. One more runs at once than there are
  # processors: each waits for others much of its time. Whatever they started ends with the run.
  class Runner
    LIMIT = 15 * 60 # seconds for one test, or one command: what hangs must not hang everything
    ROW = "%-16<part>s %-8<result>s %7<tests>s %8<skipped>s %9<time>s %9<cpu>s  %<remark>s"
    STILL = 30 # seconds between signs of life

    Result = Struct.new(:part, :passed, :seconds, :cpu, :tests, :failed, :skipped, :slow, :remark, keyword_init: true)
    SLOW = 10 # seconds that a test may take before it is named
    private_constant :Result, :SLOW

    # @param parts [Array<Part>]
    def initialize(parts, out: $stdout, jobs: Integer(ENV.fetch("HIKYAKU_TEST_JOBS", Etc.nprocessors + 1)).clamp(1, 4), limit: LIMIT)
      @parts = parts
      @out = out
      @limit = limit
      @jobs = [jobs, parts.size].min
      @results = []
      @lock = Mutex.new
      @running = {}
      @processes = Processes.new
    end

    # @return [Boolean] whether everything passed
    def run
      began = now
      @processes.watch
      queue = Queue.new.tap { |waiting| @parts.each { |part| waiting << part }.then { waiting.close } }
      workers = Array.new(@jobs) { Thread.new { work(queue) } }
      workers.each(&:join)
      summarize(now - began)
      @results.any? && @results.all?(&:passed)
    rescue SignalException
      @lock.synchronize { @running.each_value { |pid| stop(pid) } }
      @out.puts "\ninterrupted"
      false
    ensure
      @processes.close
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def work(queue)
      while (part = queue.pop)
        output = Tempfile.create("hikyaku-test")
        report = Tempfile.create("hikyaku-report")
        begin
          result = perform(part, output, report.path)
          @lock.synchronize { show(result, output) }
        ensure
          [output, report].each { |file| file.close.then { File.unlink(file.path) } }
        end
      end
    end

    def perform(part, output, report_path)
      began = said = now
      cpu = 0.0
      remark = nil
      passed = part.commands.all? do |command|
        progress, moved = nil, now
        env, words = command.first.is_a?(Hash) ? [command.first, command.drop(1)] : [{}, command]
        pid = Process.spawn(env.merge(@processes.environment, "HIKYAKU_TEST_REPORT" => report_path), *words,
          in: File::NULL, pgroup: true, **streams(output))
        @lock.synchronize { @running[part] = pid }
        until (status, took = ended(pid))
          sleep 0.05
          # A test process touches its report whenever a test begins: a busy machine is slow, and does not hang.
          progress, moved = File.mtime(report_path), now unless progress == File.mtime(report_path)
          if remark.nil? && now - moved > @limit
            remark = "stopped after #{@limit / 60} minutes without progress"
            explain(pid) if part.tests && command.equal?(part.commands.last)
            stop(pid)
          elsif now - said > STILL
            said = now
            @lock.synchronize { @out.puts "… #{part.name} is still running (#{(now - began).round} s)" }
          end
        end
        cpu += took
        status.success?
      end
      conclude(part, passed, now - began, cpu, remark, report_path)
    ensure
      @lock.synchronize { @running.delete(part) }
    end

    # @return [Array(Process::Status, Float), nil] of a process that has ended, with the seconds of CPU that it took with all its descendants that were
    #   waited for
    def ended(pid)
      @lock.synchronize do
        before = Process.times
        status = Process.wait2(pid, Process::WNOHANG)&.last or return
        after = Process.times
        [status, after.cutime + after.cstime - before.cutime - before.cstime]
      end
    end

    # One part alone is watched as it runs; several would be mixed up.
    def streams(output) = (@parts.one? && @out == $stdout) ? {} : {out: [output.path, "a"], err: [:child, :out]}

    # A test process that ends well without a report, or with no test in it, has tested nothing.
    def conclude(part, passed, seconds, cpu, remark, report_path)
      written = File.binread(report_path)
      report = written.empty? ? {} : Marshal.load(written)
      if part.tests && passed && report.fetch(:tests, 0).zero?
        passed = false
        remark = "no test ran"
      end
      Result.new(part: part, passed: passed, seconds: seconds, cpu: cpu, tests: report[:tests],
        failed: report.fetch(:failed, []), skipped: report.fetch(:skipped, []), slow: report.fetch(:slow, []), remark: remark)
    end

    # A test process says then where it hangs (test/support/report.rb).
    def explain(pid)
      Process.kill(:USR2, pid)
      sleep 1
    rescue Errno::ESRCH
      nil
    end

    def stop(pid)
      Process.kill(:TERM, -pid)
      sleep 1
      Process.kill(:KILL, -pid)
    rescue Errno::ESRCH, Errno::EPERM
      nil
    end

    def show(result, output)
      @results << result
      title = "#{result.part.name}: #{result.passed ? "ok" : "FAILED"}, #{seconds(result.seconds)}"
      @out.puts "── #{title} #{"─" * [0, 90 - title.size].max}"
      @out.puts File.read(output.path, encoding: "UTF-8").scrub.strip, ""
      @out.flush
    end

    def summarize(total)
      @out.puts format(ROW, part: "part", result: "result", tests: "tests", skipped: "skipped", time: "time", cpu: "CPU", remark: "").rstrip
      @results.sort_by { |result| @parts.index(result.part) }.each do |result|
        @out.puts format(ROW, part: result.part.name, result: result.passed ? "ok" : "FAILED", tests: result.tests,
          skipped: result.tests && result.skipped.size, time: seconds(result.seconds), cpu: seconds(result.cpu), remark: result.remark).rstrip
      end
      @out.puts "", "A part whose time is much longer than its CPU time waits, for others or for the clock; the others compute."
      list_slow
      list_skipped
      failed = @results.reject(&:passed).map { |result| result.part.name }
      @out.puts "", (failed.empty? ? "everything passed" : "FAILED: #{failed.join(", ")}") + " (#{seconds(total)})"
      @results.each { |result| @out.puts result.failed.map { |line| "  #{result.part.name}: #{line}" } }
    end

    def list_slow
      slow = @results.flat_map { |result| result.slow.map { |time, name| [time, result.part.name, name] } }.select { |time, *| time >= SLOW }
      return if slow.empty?

      @out.puts "", "The slowest tests:", slow.sort.reverse.map { |time, part, name| format("  %7.1f s  %s: %s", time, part, name) }
    end

    def list_skipped
      skipped = @results.flat_map(&:skipped)
      return if skipped.empty?

      @out.puts "", "SKIPPED, so NOT tested here (#{skipped.size}):", skipped.map { |line| "  #{line}" }
    end

    def seconds(number) = format("%.1f s", number)
  end
end
