# frozen_string_literal: true

require "fileutils"
require "json"
require "net/http"
require "open3"
require "socket"
require "tempfile"
require "tmpdir"
require_relative "free_port"

# An example application as its users start it: a process of its own on a free port of the loopback. Works on a copy, so
# that several can run, and nothing is left in the checkout.
class RailsServer
  ROOT = File.expand_path("../..", __dir__)
  EXAMPLE = File.join(ROOT, "examples/rails_bookshop")
  # What whoever tried the example has left there.
  LEFT_OUT = %w[log storage tmp].freeze
  # The Rails that the tests run with, and the one that the examples are written for.
  RAILS = Gem.loaded_specs["railties"].version.segments.first(2).join(".")
  WRITTEN_FOR = /(?<=load_defaults |Migration\[|Schema\[)[\d.]+/
  PATIENCE = 180
  private_constant :LEFT_OUT, :RAILS, :WRITTEN_FOR, :PATIENCE

  # A copy of the example that any number of processes may use.
  class Folder
    attr_reader :path

    # @param files [Hash{String => String}] files to add or to replace
    # @param example [String] the folder that is copied
    def initialize(files = {}, example: EXAMPLE)
      @path = Dir.mktmpdir("hikyaku-rails")
      FileUtils.cp_r(Dir[File.join(example, "*")].reject { |name| LEFT_OUT.include?(File.basename(name)) }, @path)
      files.each do |name, text|
        FileUtils.mkdir_p(File.join(@path, File.dirname(name)))
        File.write(File.join(@path, name), text)
      end
      Dir["#{@path}/{config/application,db/**/*}.rb"].each { |file| File.write(file, File.read(file).gsub(WRITTEN_FOR, RAILS)) }
    end

    # @return [Array(String, Process::Status)] what it printed, and how it ended
    def run(*command, **env)
      Open3.capture2e(self.env(env), *command, chdir: @path)
    end

    def env(more = {})
      {"BUNDLE_GEMFILE" => ENV.fetch("BUNDLE_GEMFILE", File.join(ROOT, "Gemfile")), "RAILS_ENV" => "development", "SECRET_KEY_BASE" => "k" * 64, "RUBYOPT" => nil,
       "WEB_CONCURRENCY" => nil, "PORT" => nil, "RAILS_LOG_TO_STDOUT" => nil}.merge(more.transform_keys(&:to_s))
    end

    def remove = FileUtils.rm_rf(@path)
  end

  PUMA = %w[bundle exec puma].freeze

  attr_reader :port, :pid

  def self.free_port = FreePort.pick

  # @param folder [Folder]
  # @param command [Array<String>] the server without its address
  # @param probe [String] the path of a page that answers when it runs
  def initialize(folder, *command, port: RailsServer.free_port, probe: "/books.json", **env)
    @folder = folder
    @probe = probe
    @command = command.empty? ? PUMA : command
    @env = env
    @port = port
    @log = Tempfile.new("hikyaku-rails")
    start
  end

  def start
    # PORT and not only --bind, which adds to what config/puma.rb says.
    @pid = Process.spawn(@folder.env({PORT: port.to_s}.merge(@env)), *@command, "--bind", "tcp://127.0.0.1:#{port}", chdir: @folder.path, out: @log, err: @log)
    deadline = now + PATIENCE
    until answers?
      raise "the application did not start: #{log}" if now > deadline || Process.waitpid(@pid, Process::WNOHANG)
      sleep 0.05
    end
  end

  # @param signal [String] KILL leaves it no time to say goodbye
  def stop(signal = "TERM")
    return unless @pid
    Process.kill(signal, @pid)
    await_end(signal)
    @pid = nil
  rescue Errno::ESRCH, Errno::ECHILD
    @pid = nil
  end

  def url = "http://localhost:#{port}"

  def log = File.read(@log.path)

  # @return [Net::HTTPResponse]
  def get(path, headers = {}) = Net::HTTP.get_response(URI("http://127.0.0.1:#{port}#{path}"), headers)

  private

  def await_end(signal)
    deadline = now + PATIENCE
    until Process.wait(@pid, Process::WNOHANG)
      next sleep(0.02) if now < deadline
      Process.kill(:KILL, @pid)
      Process.wait(@pid)
      raise "the application did not end after #{signal}: #{log}"
    end
  end

  def answers?
    get(@probe).code == "200"
  rescue SystemCallError, IOError
    false
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
