# frozen_string_literal: true

require "json"
require "net/http"
require "tempfile"
require_relative "awaited_process"
require_relative "free_port"

# One of the tickers of examples/ticker as its reader starts it: a process of its own, on a free port of the loopback. It can be
# stopped and started again on the same.
class TickerServer
  include AwaitedProcess

  FOLDER = File.expand_path("../../examples/ticker", __dir__)
  PATIENCE = 180
  private_constant :PATIENCE

  attr_reader :port

  # @param file [String] rack.ru, sinatra.ru or roda.ru
  def initialize(file)
    @file = file
    @port = FreePort.pick
    @log = Tempfile.new("hikyaku-ticker")
    start
  end

  def start
    env = {"HIKYAKU_ENGINE" => ENV.fetch("HIKYAKU_TEST_ENGINE", "c"), "WEB_CONCURRENCY" => nil, "PORT" => nil}
    @pid = Process.spawn(env, "bundle", "exec", "puma", "--bind", "tcp://127.0.0.1:#{port}", File.join(FOLDER, @file), out: @log, err: @log)
    deadline = now + PATIENCE
    until answers?
      raise "#{@file} did not start: #{log}" if now > deadline || Process.waitpid(@pid, Process::WNOHANG)
      sleep 0.05
    end
  end

  def stop
    return unless @pid
    Process.kill(:TERM, @pid)
    await_end(@file, PATIENCE)
  end

  def url = "http://localhost:#{port}/"

  def log = File.read(@log.path)

  # @return [Net::HTTPResponse]
  def get(path) = Net::HTTP.get_response(URI("#{url}#{path}"))

  # @return [Net::HTTPResponse]
  def post(path, form) = Net::HTTP.post_form(URI("#{url}#{path}"), form)

  private

  def answers?
    get("quotes").is_a?(Net::HTTPOK)
  rescue SystemCallError, IOError
    false
  end
end
