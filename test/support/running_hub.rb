# frozen_string_literal: true

require "net/http"
require "rbconfig"
require "socket"
require "tempfile"
require_relative "awaited_process"
require_relative "free_port"

# The hub as its users start it: a process of its own, in developer mode unless told otherwise, on a free port of the
# loopback. It can be killed and started again on the same port.
class RunningHub
  include AwaitedProcess

  # As HubServer's.
  ENGINE = ENV.fetch("HIKYAKU_TEST_ENGINE", "c")
  COMMAND = [RbConfig.ruby, File.expand_path("../../exe/hikyaku", __dir__), "serve"].freeze
  PATIENCE = 180
  private_constant :COMMAND, :PATIENCE

  # Seconds for a graceful stop, which the hub itself bounds; more means that it hangs.
  STOP_PATIENCE = 180
  private_constant :STOP_PATIENCE

  attr_reader :port
  # @return [Integer, nil] nil while it does not run
  attr_reader :pid

  # @param flags [Array<String>] of `hikyaku serve`; the last of a flag counts, so "--no-dev" is possible
  # @param env [Hash{String => String}]
  # @param host [String] where it listens; "" is every address, which developer mode does not allow
  # @param spawning [Hash] options of Process.spawn: rlimit_nofile
  def initialize(*flags, env: {}, host: "127.0.0.1", **spawning)
    @host = host
    @flags = flags
    @env = env
    @spawning = spawning
    @port = FreePort.pick
    @log = Tempfile.new("hikyaku-hub")
    start
  end

  # Starts it, and does not wait until it answers.
  #
  # @param env [Hash{String => String}] of this start alone
  # @return [void]
  def launch(env = {})
    @pid = Process.spawn(@env.merge(env), *COMMAND, "--dev", "--engine", ENGINE, "--listen", "#{@host}:#{port}", *@flags, out: @log, err: @log, **@spawning)
  end

  def start
    launch
    deadline = now + PATIENCE
    until answers?
      give_up if now > deadline || Process.waitpid(@pid, Process::WNOHANG)
      sleep 0.02
    end
  end

  # @param signal [String] KILL leaves it no time to say goodbye
  # @return [Process::Status, nil] nil when it did not run
  def stop(signal = "TERM")
    return unless @pid
    Process.kill(signal, @pid)
    wait
  rescue Errno::ESRCH, Errno::ECHILD
    @pid = nil
  end

  # @return [Process::Status] of the process that ends by itself, or because it was told to
  # @raise [RuntimeError] it does not end; it was killed
  def wait(seconds = STOP_PATIENCE) = await_end("the hub", seconds)

  def url = "http://127.0.0.1:#{port}/.well-known/mercure"

  def page = "#{url}/ui/"

  def log = File.read(@log.path)

  # @return [String] a token of the hub's own, with these rights
  def token(**rights) = JSON.parse(post("#{page}token", JSON.generate(rights), "application/json").body).fetch("token")

  # @return [String] the id of the event
  def publish(fields, token: self.token(publish: ["*"]))
    response = post(url, URI.encode_www_form(fields), "application/x-www-form-urlencoded", "authorization" => "Bearer #{token}")
    raise "#{response.code} #{response.body}" unless response.code == "200"
    response.body
  end

  # Any answer will do; a port that is open is not yet a hub that answers.
  #
  # @return [Boolean]
  def answers?
    socket = Socket.tcp("127.0.0.1", port, connect_timeout: 1)
    socket.write("OPTIONS / HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n")
    !socket.wait_readable(1).nil? && socket.read_nonblock(9, exception: false) == "HTTP/1.1 "
  rescue SystemCallError
    false
  ensure
    socket&.close
  end

  private

  def give_up
    stop("KILL")
    raise "the hub did not start: #{log}"
  end

  def post(url, body, type, headers = {}) = Net::HTTP.post(URI(url), body, {"content-type" => type}.merge(headers))
end
