# frozen_string_literal: true

require "fileutils"
require "json"
require "rbconfig"
require "socket"
require "tempfile"
require "tmpdir"
require_relative "free_port"
require_relative "http_client"

# Puma as its users start it, with `plugin :hikyaku`: a process of its own in a folder of its own.
class PumaServer
  ROOT = File.expand_path("../..", __dir__)
  PATIENCE = 180
  PUMA = %w[bundle exec puma -C puma.rb].freeze
  # An application that publishes what it is asked to, and says who did it.
  APPLICATION = <<~'RUBY'
    require "hikyaku"
    use Hikyaku::Server::Relay
    run ->(env) do
      name, *values = env["PATH_INFO"].delete_prefix("/").split("/")
      case name
      when "publish"
        key = values.last && "key-#{values.last}"
        [200, {}, [Hikyaku.publish("/news", values.last.to_s, private: values.first == "private", idempotency_key: key)]]
      when "disconnect" then [200, {}, [Hikyaku.disconnect(subject: values.first).to_s]]
      when "shell" then [200, {}, [`#{File.join(__dir__, "shell.sh")}`]]
      else [200, {}, [Process.pid.to_s]]
      end
    rescue Hikyaku::Error => error
      [500, {}, ["#{error.class}: #{error.message}"]]
    end
  RUBY
  private_constant :PATIENCE, :PUMA

  # It did not do in time what it should.
  class TooLate < StandardError
  end

  # @return [Integer]
  attr_reader :port
  # @return [Integer] the master
  attr_reader :pid
  # @return [String]
  attr_reader :folder

  # @param settings [String] lines of puma.rb after `plugin :hikyaku`
  # @param workers [Integer, nil]
  # @param preload [Boolean, nil]
  # @param files [Hash{String => String}] further files of its folder, in which "127.0.0.1:PORT" stands for its address
  # @param bind [String]
  # @param wait [Boolean] until it answers
  def initialize(settings = "hikyaku anonymous: true", workers: nil, preload: nil, files: {}, bind: "tcp://127.0.0.1:PORT", wait: true, env: {})
    @folder = Dir.mktmpdir("puma")
    @port = FreePort.pick
    # Not with what Bundler has made of this process's, but with the same gems.
    @env = ENV.keys.grep(/\A(?:BUNDLE|RUBYOPT|RUBYLIB|WEB_CONCURRENCY)/).to_h { |name| [name, nil] }
      .merge("BUNDLE_GEMFILE" => ENV.fetch("BUNDLE_GEMFILE", File.join(ROOT, "Gemfile")), "TMPDIR" => @folder, **env)
    lines = ["bind #{bind.inspect}", "threads 1, 5", *("workers #{workers}" if workers), *("worker_check_interval 1" if workers),
      *("preload_app! #{preload}" unless preload.nil?), "silence_single_worker_warning", "plugin :hikyaku", settings]
    {"puma.rb" => lines.join("\n"), "config.ru" => APPLICATION, **files}.each { |name, text| write(name, text) }
    @log = Tempfile.new("puma")
    @pid = Process.spawn(@env, *PUMA, chdir: @folder, out: [@log.path, "a"], err: [@log.path, "a"], pgroup: true)
    await("Puma to start") { log.include?(workers ? "booted" : "Use Ctrl-C") && (workers.nil? || log.scan(/Worker \d+ \(PID: \d+\) booted/).size >= workers) } if wait
  end

  def write(name, text)
    FileUtils.mkdir_p(File.dirname("#{folder}/#{name}"))
    File.write("#{folder}/#{name}", text.gsub("127.0.0.1:PORT", "127.0.0.1:#{port}"))
    File.chmod(0o755, "#{folder}/#{name}") if name.end_with?(".sh", "bin/rails")
  end

  def log = File.read(@log.path)

  # @return [HttpClient]
  def client = HttpClient.new(port)

  def path = "/.well-known/mercure"

  # @return [String] what the application answers
  def get(path) = client.request("GET", path).body

  # @return [EventStream]
  def follow(topic = "/news") = client.stream("GET", "#{path}?match=#{topic}")

  # @return [String, nil] where the hub is
  def sidecar = Dir["#{folder}/hikyaku-*"].first

  # @return [Hash]
  def about = JSON.parse(File.read("#{sidecar}/hub.json"))

  # @return [Integer] of the hub's process
  def hub = about["pid"]

  def signal(name) = Process.kill(name, @pid)

  # Restarts the workers one by one, and waits until the last of the new ones has booted.
  def phased_restart
    booted = log.scan("booted").size
    signal("USR1")
    await("all workers to be new") { log.scan("booted").size >= booted + size && workers_of_one_phase? }
  end

  # Makes another program of Puma's master, and waits until that answers.
  def hot_restart
    started = log.scan("Use Ctrl-C").size
    booted = log.scan("booted").size
    signal("USR2")
    await("the new Puma") { log.scan("Use Ctrl-C").size > started && log.scan("booted").size >= booted + size }
  end

  # @return [Array<Integer>] the workers that are there
  def workers = log.scan(/Worker (\d+) \(PID: (\d+)\) booted/).to_h.values.map(&:to_i)

  # @return [Process::Status]
  def stop(name = "TERM")
    return @status if @status
    signal(name)
    status
  ensure
    FileUtils.rm_rf(@folder)
  end
  alias_method :close, :stop

  # @return [Process::Status] when it has ended
  def status
    await("Puma to end") { @status ||= Process.wait2(@pid, Process::WNOHANG)&.last }
  rescue TooLate
    Process.kill(:KILL, -@pid)
    Process.wait(@pid)
    raise
  end

  def await(what, seconds = PATIENCE)
    deadline = HttpClient.now + seconds
    until (value = yield)
      raise TooLate, "waited too long for #{what}:\n#{log}" if HttpClient.now > deadline || ended_early?(what)
      sleep 0.02
    end
    value
  end

  private

  def size = log[/Workers: (\d+)/, 1].to_i

  def workers_of_one_phase?
    phases = log.scan(/Worker (\d+) \(PID: \d+\) booted in \S+ phase: (\d+)/).to_h
    phases.size == size && phases.values.uniq.one?
  end

  def ended_early?(what)
    return if @status || what == "Puma to end"
    @status = Process.wait2(@pid, Process::WNOHANG)&.last
    !!@status
  end
end
