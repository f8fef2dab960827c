# frozen_string_literal: true

require "support/integration"
require "support/fleet"

# Thousands of subscribers on one Puma with five threads, beside an application.
class ManySubscribersTest < Integration::Test
  include AccessTokens

  SUBSCRIBERS = 5_000
  TOPIC = "https://example.com/everybody"
  RACKUP = File.expand_path("../support/beside_an_application.ru", __dir__)
  LIB = File.expand_path("../../lib", __dir__)

  test "5,000 subscribers hold no thread: ordinary requests are answered all the while, and an update reaches each of them once" do
    skip "#{SUBSCRIBERS} sockets do not fit into the limit of open files: ulimit -n" unless Fleet.allow(SUBSCRIBERS + 500)
    start_application
    fleet = ending(Fleet.new(@port, "GET /.well-known/mercure?match=#{TOPIC} HTTP/1.1\r\nHost: app.example.com\r\nAccept: text/event-stream\r\n\r\n"))
    fleet.open(1)
    threads = threads_of(@puma)
    @phase = :connecting
    visitor = visit
    fleet.open(SUBSCRIBERS - 1)
    assert_equal threads, threads_of(@puma), "subscribers hold threads"
    @phase = :connected
    eventually("an ordinary request") { @answered[:connected] >= 5 }
    @phase = :publishing
    updates = Array.new(3) { |number| publish("update #{number}").then { "data: update #{number}\n" } }
    fleet.pump(HttpClient.now + HttpClient::PATIENCE, "the updates") { fleet.members.all? { |member| member.bytes.include?(updates.last) } }
    eventually("an ordinary request") { @answered[:publishing] >= 5 }
    @phase = nil
    visitor.join(60) || flunk("an ordinary request hangs")
    updates.each { |update| assert_equal({1 => SUBSCRIBERS}, fleet.members.map { |member| member.count(update) }.tally) }
    assert fleet.members.none?(&:ended?)
    assert_operator @answered[:connecting], :>, 0
  end

  private

  def start_application
    @port = free_port
    @url = "http://app.example.com/.well-known/mercure"
    limit = Process.getrlimit(:NOFILE).last
    environment = {"HUB_URL" => @url, "HUB_ISSUER" => ISSUER, "HUB_KEY" => SECRETS[:publisher], "RUBYLIB" => LIB, "RACK_ENV" => "production", "WEB_CONCURRENCY" => nil}
    @puma = run_client("bundle", "exec", "puma", "--no-config", "--threads", "5:5", "--bind", "tcp://127.0.0.1:#{@port}", RACKUP, env: environment, rlimit_nofile: limit)
    eventually("the application") do
      HttpClient.new(@port).request("GET", "/").status == 200
    rescue SystemCallError, EOFError
      nil
    end
  end

  # Asks for an ordinary page again and again, each time on a connection of its own; each must be answered in time.
  def visit
    @answered = Hash.new(0)
    Thread.new do
      while (phase = @phase)
        response = HttpClient.new(@port).request("GET", "/page")
        raise "an ordinary request was answered #{response.status}" unless response.body == "ordinary /page"
        @answered[phase] += 1
        sleep 0.01
      end
    end
  end

  def publish(data)
    @token ||= token(:publisher, TOPIC, aud: @url)
    response = HttpClient.new(@port).request("POST", "/.well-known/mercure", body: URI.encode_www_form(topic: TOPIC, data: data),
      headers: {"authorization" => "Bearer #{@token}", "content-type" => "application/x-www-form-urlencoded"})
    assert_equal 200, response.status, response.body
  end

  def threads_of(process) = Dir.children("/proc/#{process.pid}/task").size
end
