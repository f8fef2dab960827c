# frozen_string_literal: true

require "fileutils"
require "json"
require "net/http"
require "open3"
require "socket"
require "tempfile"
require "tmpdir"

# The example application as its users start it: a process of its own on a free port of the loopback. Works on a copy, so
# that several can run, and nothing is left in the checkout.
class RailsServer
  ROOT = File.expand_path("../..", __dir__)
  EXAMPLE = File.join(ROOT, "examples/rails_live")
  PATIENCE = 40
  private_constant :PATIENCE

  # A copy of the example that any number of processes may use.
  class Folder
    attr_reader :path

    # @param files [Hash{String => String}] files to add or to replace
    def initialize(files = {})
      @path = Dir.mktmpdir("hikyaku-rails")
      FileUtils.cp_r(Dir[File.join(EXAMPLE, "*")].reject { |name| %w[tmp log].include?(File.basename(name)) }, @path)
      files.each do |name, text|
        FileUtils.mkdir_p(File.join(@path, File.dirname(name)))
        File.write(File.join(@path, name), text)
      end
    end

    # @return [Array(String, Process::Status)] what it printed, and how it ended
    def run(*command, **env)
      Open3.capture2e(self.env(env), *command, chdir: @path)
    end

    def env(more = {})
      {"BUNDLE_GEMFILE" => File.join(ROOT, "Gemfile"), "RAILS_ENV" => "development", "SECRET_KEY_BASE" => "k" * 64, "RUBYOPT" => nil,
       "WEB_CONCURRENCY" => nil, "PORT" => nil, "RAILS_LOG_TO_STDOUT" => nil}.merge(more.transform_keys(&:to_s))
    end

    def remove = FileUtils.rm_rf(@path)
  end

  PUMA = %w[bundle exec puma].freeze

  attr_reader :port

  def self.free_port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }

  # @param folder [Folder]
  # @param command [Array<String>] the server without its address
  def initialize(folder, *command, port: RailsServer.free_port, **env)
    @folder = folder
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
    Process.wait(@pid)
    @pid = nil
  rescue Errno::ESRCH, Errno::ECHILD
    @pid = nil
  end

  def url = "http://localhost:#{port}"

  def log = File.read(@log.path)

  # @return [Net::HTTPResponse]
  def get(path, headers = {}) = Net::HTTP.get_response(URI("http://127.0.0.1:#{port}#{path}"), headers)

  private

  def answers?
    get("/books.json").code == "200"
  rescue SystemCallError, IOError
    false
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
