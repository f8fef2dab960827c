# frozen_string_literal: true

require "fileutils"
require "json"
require "socket"
require "tmpdir"
require_relative "availability"
require_relative "free_port"

# A headless Firefox with a fresh profile, driven by Marionette: JSON over a socket, which Firefox speaks by itself.
#
#     firefox = Firefox.new
#     firefox.visit(url)
#     firefox.until("not there") { firefox.js("return document.title") == "page" }
#     firefox.quit
class Firefox
  PATIENCE = 180
  STARTING = 60
  private_constant :PATIENCE, :STARTING

  class Error < StandardError
  end

  def initialize
    @profile = Dir.mktmpdir("hikyaku-firefox")
    @port = FreePort.pick
    File.write(File.join(@profile, "user.js"), preferences)
    @pid = Process.spawn({"MOZ_HEADLESS" => "1", "HOME" => @profile}, Availability.path_of("firefox-esr"), "--marionette", "--headless", "--no-remote",
      "--profile", @profile, out: File::NULL, err: File::NULL, pgroup: true)
    @socket = connect
    receive
    @number = 0
    command("WebDriver:NewSession", capabilities: {alwaysMatch: {}})
  rescue
    quit
    raise
  end

  def visit(url) = command("WebDriver:Navigate", url: url)

  # @param script [String] with a `return`
  def js(script, *arguments) = command("WebDriver:ExecuteScript", script: script, args: arguments, newSandbox: false, sandbox: nil).fetch("value")

  # @return [String] the handle of a new tab, which is shown from now on
  def open_tab
    command("WebDriver:NewWindow", type: "tab").fetch("handle").tap { |handle| show(handle) }
  end

  # @return [String] the tab that is shown
  def tab = command("WebDriver:GetWindowHandle").fetch("value")

  def show(handle) = command("WebDriver:SwitchToWindow", handle: handle, focus: true)

  def close_tab = command("WebDriver:CloseWindow")

  def back = command("WebDriver:Back")

  def until(what)
    deadline = now + PATIENCE
    loop do
      value = yield
      return value if value
      raise Minitest::Assertion, what if now > deadline
      sleep 0.05
    end
  end

  def quit
    @socket&.close
    if @pid
      Process.kill(:KILL, -@pid)
      Process.wait(@pid)
    end
  rescue Errno::ESRCH, Errno::ECHILD
    nil
  ensure
    @pid = @socket = nil
    FileUtils.rm_rf(@profile)
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def preferences
    {"marionette.port" => @port, "datareporting.policy.dataSubmissionEnabled" => false, "app.update.enabled" => false,
     "network.captive-portal-service.enabled" => false, "network.connectivity-service.enabled" => false,
     "browser.shell.checkDefaultBrowser" => false, "browser.startup.homepage_override.mstone" => "ignore"}
      .map { |name, value| "user_pref(#{name.to_json}, #{value.to_json});\n" }.join
  end

  def connect
    deadline = now + STARTING
    begin
      Socket.tcp("127.0.0.1", @port, connect_timeout: 1)
    rescue SystemCallError
      raise Error, "Firefox did not start" if now > deadline || Process.waitpid(@pid, Process::WNOHANG)
      sleep 0.1
      retry
    end
  end

  # A request is [0, number, name, parameters], its answer [1, number, error, result]; each goes with its length in front.
  def command(name, **parameters)
    message = JSON.generate([0, @number += 1, name, parameters])
    @socket.write("#{message.bytesize}:#{message}")
    _, _, error, result = receive
    raise Error, "#{name}: #{error["message"]}" if error
    result || {}
  end

  def receive
    raise Error, "Firefox does not answer" unless @socket.wait_readable(STARTING)
    length = Integer(@socket.gets(":").delete_suffix(":"))
    JSON.parse(@socket.read(length).force_encoding(Encoding::UTF_8))
  end
end
