# frozen_string_literal: true

require "net/http"
require "socket"
require "tempfile"
require "tmpdir"
require_relative "awaited_process"
require_relative "free_port"

# Thruster, and the hub that it starts, as in a container.
class Thruster
  include AwaitedProcess

  GUIDE = File.expand_path("../../docs/guides/deployment.md", __dir__)
  PATIENCE = 180
  private_constant :GUIDE, :PATIENCE

  # @return [Integer, nil] nil while it does not run
  attr_reader :pid

  class << self
    # @return [String, nil] path of the program; the gem has none for some platforms
    def program
      spec = Gem.loaded_specs["thruster"] || Gem::Specification.find_by_name("thruster")
      Dir["#{spec.gem_dir}/exe/*/thrust"].first
    rescue Gem::MissingSpecError
      nil
    end

    def available? = !program.nil?

    # @return [Hash{String => String}] what the guide tells to set
    def guide = File.read(GUIDE).scan(/^export ([A-Z_]+)=(\S+)/).to_h
  end

  # @param settings [Hash{String => String}]
  # @param hub [Array<String>] the command, without where to listen and what URL it has
  def initialize(settings, hub)
    @port = FreePort.pick
    target = FreePort.pick
    @log = Tempfile.new("thruster")
    env = {"HTTP_PORT" => @port.to_s, "TARGET_PORT" => target.to_s, "STORAGE_PATH" => Dir.mktmpdir("thruster"), "LOG_REQUESTS" => "0"}
    @pid = Process.spawn(env.merge(settings), self.class.program, *hub, "--listen", "127.0.0.1:#{target}", "--resource-identifier", url, out: @log, err: @log)
    deadline = now + PATIENCE
    until answers?
      raise "Thruster did not start: #{log}" if now > deadline || Process.waitpid(@pid, Process::WNOHANG)
      sleep 0.05
    end
  end

  def url = "http://localhost:#{@port}/.well-known/mercure"

  def stop
    return unless @pid
    Process.kill(:TERM, @pid)
    await_end("Thruster", PATIENCE)
  end

  def log = File.read(@log.path)

  private

  # Not with 502, while the hub is not there.
  def answers?
    Net::HTTP.get_response(URI(url)).code == "400"
  rescue SystemCallError, EOFError
    false
  end
end
