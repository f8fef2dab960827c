# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "socket"
require "tmpdir"
require "hikyaku/broker/client"
require "hikyaku/broker/wire"
require_relative "awaited_process"
require_relative "sanitizers"

# The broker as its users start it: a process of its own, on a Unix socket in a folder of its own, with storage unless told
# otherwise. It can be killed and started again.
class BrokerProcess
  include AwaitedProcess

  ENGINE = ENV.fetch("HIKYAKU_TEST_ENGINE", "c")
  EXE = [RbConfig.ruby, File.expand_path("../../exe/hikyaku", __dir__)].freeze
  PATIENCE = 180
  # Small, so that segments are begun, dropped and made while a test runs.
  SEGMENT_BYTES = 1_048_576
  private_constant :EXE, :SEGMENT_BYTES

  # It did not start; the message is what it said.
  class NotStarted < StandardError
    # @return [Process::Status]
    attr_reader :status

    def initialize(message, status)
      super(message)
      @status = status
    end
  end

  attr_reader :pid, :folder, :socket, :storage

  # @return [String, nil] why the broker of this engine cannot be tested
  def self.missing
    return if ENGINE == "ruby"
    return Sanitizers.missing if Sanitizers.wanted?
    require "hikyaku/server/native_reactor"
    "the engine in C that was built has no broker: bin/compile" unless Hikyaku::Server::NativeReactor.private_method_defined?(:_listen_broker)
  rescue LoadError => error
    error.message
  end

  # Sends, and sends again while the next segment of the journal is in the making.
  #
  # @param sender [Hikyaku::Broker::Client]
  # @return [Object] what the client answers
  def self.send_patiently(sender, ...)
    sender.send_message(...)
  rescue Hikyaku::Broker::Client::Overloaded
    sleep 0.05
    retry
  end

  # @param flags [Array<String>] of `hikyaku broker`
  # @param storage [Boolean, String] whether there is any, or the folder
  # @param command [Array<String>] another that runs a broker
  # @param within [Array<String>] a command that runs it
  # @param spawning [Hash] options of Process.spawn
  def initialize(*flags, storage: true, command: %w[broker], within: [], env: {}, **spawning)
    @folder = Dir.mktmpdir("hikyaku-broker")
    @socket = File.join(@folder, "broker.sock")
    @storage = storage.is_a?(String) ? storage : (File.join(@folder, "storage") if storage)
    @log = File.join(@folder, "log")
    @flags = flags
    @command = command
    @within = within
    # The last --engine counts.
    engine = flags.rindex("--engine")&.then { |at| flags[at + 1] } || ENGINE
    @sanitized = Sanitizers.wanted? && engine == "c"
    @env = @sanitized ? with_sanitizers(env) : env
    @spawning = spawning
    start
  end

  # Starts it, and does not wait until it answers.
  #
  # @param env [Hash{String => String}] of this start alone
  # @return [void]
  def launch(env = {})
    prefix = (@command.first == "broker") ? "--" : "--broker-"
    kept = ["--storage", @storage, "#{prefix}segment-bytes", SEGMENT_BYTES.to_s] if @storage
    @pid = Process.spawn(@env.merge(env), *@within, *EXE, *@command, "--engine", ENGINE, "#{prefix}socket", @socket, *kept, *@flags, out: [@log, "a"], err: [@log, "a"], **@spawning)
  end

  # @return [self]
  # @raise [NotStarted]
  def start
    launch
    deadline = now + PATIENCE
    until answers?
      status = Process.wait2(@pid, Process::WNOHANG)&.last
      give_up(status) if status || now > deadline
      sleep 0.02
    end
    raise "it does not run on the engine with sanitizers" if @sanitized && !Sanitizers.runs?(@pid)
    self
  end

  # @param signal [String] KILL leaves it no time
  # @return [Process::Status, nil] nil when it did not run
  def stop(signal = "TERM", seconds: PATIENCE)
    return unless @pid
    Process.kill("CONT", @pid)
    Process.kill(signal, @pid)
    wait(seconds)
  end

  # @return [self]
  def kill
    stop("KILL")
    self
  end

  def signal(name) = Process.kill(name, @pid)

  # Stops it as a debugger would, and waits until it stands still.
  #
  # @return [void]
  def pause
    signal("STOP")
    sleep 0.005 until File.read("/proc/#{@pid}/stat")[/\) (\w)/, 1] == "T"
  end

  # @return [void]
  def go_on = signal("CONT")

  # @return [Process::Status] of the process that ends by itself, or because it was told to
  def wait(seconds = PATIENCE) = await_end("the broker", seconds)

  # @return [Hikyaku::Broker::Client]
  def client(**options) = Hikyaku::Broker::Client.open("unix:#{@socket}", **options)

  # @return [UNIXSocket] on which nothing was said yet
  def connect = UNIXSocket.new(@socket)

  # @return [Integer] the TCP port, where it listens on one: it answers on its socket a moment before it says so
  def port
    deadline = now + PATIENCE
    until (port = log[/listens on .*127\.0\.0\.1:(\d+)/, 1])
      raise "it has not said its port: #{log}" if now > deadline
      sleep 0.01
    end
    port.to_i
  end

  def log = File.read(@log)

  # @return [Array<String>] lines that say that something is wrong
  def complaints = log.scan(/^\S+ (?:ERROR|FATAL|WARN) .*/) + Sanitizers.reports(log)

  # @return [void]
  # @raise [RuntimeError] sanitizers have found something
  def close
    stop("KILL")
    reports = File.exist?(@log) ? Sanitizers.reports(log) : []
    FileUtils.rm_rf(@folder)
    raise reports.join("\n") if reports.any?
  end

  # @return [Boolean]
  def answers?
    UNIXSocket.new(@socket).close
    true
  rescue SystemCallError
    false
  end

  private

  def give_up(status)
    unless status
      Process.kill("KILL", @pid)
      status = Process.wait2(@pid).last
    end
    @pid = nil
    raise NotStarted.new(log, status)
  end

  # They are loaded first.
  def with_sanitizers(env)
    ours = Sanitizers.environment
    ours.merge(env, {"LD_PRELOAD" => [ours["LD_PRELOAD"], env["LD_PRELOAD"]].compact.join(" ")})
  end
end
