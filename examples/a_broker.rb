# frozen_string_literal: true

$LOAD_PATH.unshift File.expand_path("../lib", __dir__)
require "fileutils"
require "hikyaku/broker/client"
require "rbconfig"
require "tmpdir"

# A broker for an example: the one that HIKYAKU_BROKER_ADDRESS names, or one of its own, which ends with it, however that
# ends.
module ABroker
  EXE = File.expand_path("../exe/hikyaku", __dir__)

  # @yieldparam address [String]
  def self.run
    return yield ENV["HIKYAKU_BROKER_ADDRESS"] if ENV["HIKYAKU_BROKER_ADDRESS"]
    Dir.mktmpdir("hikyaku-example") do |folder|
      # A group of its own: what a keyboard says to all processes of the example is not for the broker, which ends last.
      pid = Process.spawn(RbConfig.ruby, EXE, "broker", "--socket", "#{folder}/broker.sock", "--storage", folder,
        pgroup: true, out: File::NULL, err: "#{folder}/log")
      guard = guard(pid)
      begin
        # It says that it listens, or why it cannot. On a machine that is busy this takes longer than a client waits.
        600.times { File.size?("#{folder}/log") ? break : sleep(0.1) }
        yield "unix:#{folder}/broker.sock"
      rescue Hikyaku::Broker::Client::Unreachable
        warn File.read("#{folder}/log")
        raise
      ensure
        [guard, pid].each { |each| Process.kill(:TERM, each) }.each { |each| Process.wait(each) }
      end
    end
  rescue Interrupt
    exit 130
  end

  # An example that is killed (-9) ends nothing: then this process ends the broker.
  def self.guard(broker)
    example = Process.pid
    fork do
      Signal.trap(:INT, :IGNORE)
      Signal.trap(:TERM, "DEFAULT") # the example may have said something else
      sleep 0.1 while Process.ppid == example
      Process.kill(:TERM, broker)
    end
  end
  private_class_method :guard
end
