# frozen_string_literal: true

require "net/http"
require "socket"
require "tmpdir"
require_relative "free_port"
require_relative "snippets"

# Runs the snippets of one document from top to bottom, as a reader would, in one folder and on ports of its own.
class SnippetRunner
  PATIENCE = 180
  # The addresses that documents speak of.
  HUB = "127.0.0.1:3030"
  RACK = "localhost:9292"
  PROXY = "127.0.0.1:8080"
  ROOT = Architecture::ROOT
  PATH = "/.well-known/mercure"

  class Failed < StandardError
  end

  def initialize
    @folder = Dir.mktmpdir("hikyaku-snippets")
    @ports = [HUB, RACK, PROXY].to_h { |address| [address, free_port] }
    @background = []
  end

  # @param snippet [Snippets::Snippet]
  # @raise [Failed]
  def run(snippet)
    case snippet.how
    when "hub" then start_hub(snippet)
    when "broker" then start_broker(snippet)
    when "proxy" then start_proxy(snippet)
    when "config.ru" then start_rack(snippet)
    when "config" then check_config(snippet)
    when "background" then start(snippet, *command(snippet))
    when "run" then finish(snippet, *command(snippet))
    end
  end

  # @raise [Failed] something in the background did not print what it should
  def settle
    @background.each do |process|
      wanted = process[:snippet].prints or next
      within_patience { File.read(process[:out]).include?(wanted) } ||
        fail!(process[:snippet], "did not print #{wanted.inspect}", process[:out])
    end
  end

  def close
    @background.reverse_each do |process|
      Process.kill(:TERM, -process[:pid])
      Process.wait(process[:pid])
    rescue Errno::ESRCH, Errno::ECHILD
      nil
    end
    FileUtils.rm_rf(@folder)
  end

  private

  def command(snippet)
    code = localize(snippet.code)
    case snippet.language
    when "sh", "console" then ["bash", "-euc", code.gsub(/^\$ /, "")]
    when "ruby" then [RbConfig.ruby, "-I#{ROOT}/lib", "-e", "$stdout.sync = true", "-e", code]
    when "js" then ["node", "-e", "globalThis.EventSource ??= require('eventsource').EventSource\n#{code}"]
    else fail!(snippet, "nobody knows how to run #{snippet.language}")
    end
  end

  # Where the command line looks for the hub and the broker unless it is told, and the client keeps what it knows of servers.
  def environment
    {"HIKYAKU_LISTEN" => "127.0.0.1:#{@ports[HUB]}", "HIKYAKU_BROKER_SOCKET" => socket, "XDG_CACHE_HOME" => File.join(@folder, "cache")}
  end

  def socket = File.join(@folder, "broker.sock")

  # A reader sits in the clone; the test's hub and Rack server are on ports of their own, and what is kept is kept elsewhere.
  def localize(code)
    @ports.reduce(code.gsub("tmp/hikyaku", File.join(@folder, "storage"))) { |text, (address, port)| text.gsub(address, "#{address[/[^:]+/]}:#{port}") }
  end

  def start_hub(snippet)
    start(snippet, "bash", "-euc", "#{snippet.code.strip} --listen 127.0.0.1:#{@ports[HUB]} --storage #{@folder}/storage")
    await(snippet, "http://127.0.0.1:#{@ports[HUB]}#{PATH}")
  end

  def start_broker(snippet)
    start(snippet, "bash", "-euc", localize(snippet.code))
    within_patience { File.socket?(socket) } || fail!(snippet, "no broker listens", @background.last[:out])
  end

  def start_proxy(snippet)
    start(snippet, "bash", "-euc", localize(snippet.code))
    within_patience { File.read(@background.last[:out]).include?("Proxy on http://127.0.0.1:#{@ports[PROXY]}") } ||
      fail!(snippet, "no proxy listens", @background.last[:out])
  end

  def start_rack(snippet)
    application = "MyApp = ->(_env) { [200, {}, [%(mine)]] }\n"
    file = write("config.ru", application + localize(snippet.code))
    start(snippet, "puma", "--quiet", "--no-config", "--bind", "tcp://localhost:#{@ports[RACK]}", file, "RUBYLIB" => File.join(ROOT, "lib"))
    await(snippet, "http://localhost:#{@ports[RACK]}#{PATH}")
    mine = Net::HTTP.get(URI("http://localhost:#{@ports[RACK]}/"))
    fail!(snippet, "the application beside the hub answered #{mine.inspect}") unless mine == "mine"
  end

  def check_config(snippet)
    finish(snippet, "bundle", "exec", "hikyaku", "serve", "--print-config", "--config", write("hub.yml", snippet.code))
  end

  def start(snippet, *command, **env)
    out = File.join(@folder, "out-#{@background.size}")
    pid = Process.spawn(environment.merge(env.transform_keys(&:to_s)), *command, chdir: ROOT, out: out, err: [:child, :out], in: File::NULL, pgroup: true)
    @background << {snippet: snippet, pid: pid, out: out}
    sleep 0.5 # so that a subscriber is there before the next block publishes
  end

  def finish(snippet, *command)
    out = File.join(@folder, "out")
    pid = Process.spawn(environment, *command, chdir: ROOT, out: out, err: [:child, :out], in: File::NULL)
    status = nil
    within_patience { status = Process.wait2(pid, Process::WNOHANG)&.last } || Process.kill(:KILL, pid)
    fail!(snippet, status ? "ended with #{status.exitstatus}" : "did not end", out) unless status&.success?
    fail!(snippet, "did not print #{snippet.prints.inspect}", out) if snippet.prints && !File.read(out).include?(snippet.prints)
  end

  # The hub is there when it answers that a subscription needs a matcher.
  def await(snippet, url)
    answered = within_patience do
      Net::HTTP.get_response(URI(url)).code == "400"
    rescue SystemCallError
      nil
    end
    answered || fail!(snippet, "no hub answers at #{url}", @background.last[:out])
  end

  def within_patience
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until (result = yield)
      return if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.05
    end
    result
  end

  def write(name, text) = File.join(@folder, name).tap { |path| File.write(path, text) }

  def free_port = FreePort.pick

  def fail!(snippet, what, out = nil)
    raise Failed, "#{snippet.place}: #{what}\n#{snippet.code}#{"printed:\n#{File.read(out)}" if out}"
  end
end
