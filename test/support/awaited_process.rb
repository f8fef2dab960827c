# frozen_string_literal: true

# For what runs a process in a test: @pid is its number, nil when it does not run, and `log` what it has said.
module AwaitedProcess
  private

  # @param name [String] what it is
  # @param seconds [Numeric] after which it is killed
  # @return [Process::Status] of the process that ends by itself, or because it was told to
  # @raise [RuntimeError] it did not end; it was killed
  def await_end(name, seconds)
    deadline = now + seconds
    until (status = Process.wait2(@pid, Process::WNOHANG)&.last)
      if now > deadline
        Process.kill("KILL", @pid)
        Process.wait(@pid)
        @pid = nil
        raise "#{name} did not end in #{seconds} s: #{log}"
      end
      sleep 0.01
    end
    @pid = nil
    status
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
