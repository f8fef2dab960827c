# frozen_string_literal: true

require "test_helper"
require "uri"
require "support/access_tokens"
require "support/http_client"
require "support/long_text"
require "support/puma_server"

# `plugin :hikyaku`, and workers of Puma that are killed while they publish: the hub beside them takes an update whole or not
# at all, and what the other workers publish goes on.
class PumaWorkerDeathTest < Minitest::Test
  PATIENCE = 180
  SETTINGS = "hikyaku anonymous: true, history: '256MiB', publisher_key: #{AccessTokens::SECRETS[:publisher].inspect}, " \
    "issuer: #{AccessTokens::ISSUER.inspect}, resource_identifier: #{AccessTokens::HUB_URL.inspect}".freeze
  # Each worker broadcasts for as long as it lives, and writes down what it was told is published. It dies in the midst of a
  # publish, when it is told to: after so many bytes of the body (below zero: but so many), or after all of it, and before
  # the answer.
  APPLICATION = <<~'RUBY'.sub("SUPPORT", File.expand_path("../support", __dir__))
    require "hikyaku"
    require "SUPPORT/long_text"

    module Dying
      def write(*parts)
        place = Thread.current[:dies]
        bytes = parts.join
        return super if place.nil? || bytes.bytesize < 20_000
        super((place == "all") ? bytes : bytes[0...Integer(place)])
        Process.kill(:KILL, Process.pid)
        sleep
      end
    end
    Net::BufferedIO.prepend(Dying)

    broadcaster = Thread.new do
      told = File.open("told-#{Process.pid}", "w").tap { |file| file.sync = true }
      (0..).each do |number|
        sleep 0.004
        break if File.exist?("stop")
        Hikyaku.publish("/news", LongText.of(Process.pid, number))
        told.puts(number)
      end
      File.write("stopped-#{Process.pid}", "")
    end

    # What is given on to the hub in a worker's thread.
    use(Class.new do
      def initialize(app) = @app = app

      def call(env)
        Thread.current[:dies] = env["HTTP_X_DIES"]
        @app.call(env)
      end
    end)
    use Hikyaku::Server::Relay
    run ->(env) do
      broadcaster[:dies] = env["PATH_INFO"][%r{\A/die/(.+)\z}, 1]
      [200, {}, [Process.pid.to_s]]
    end
  RUBY
  # Where in the body of a publish, and how many updates there are then.
  PLACES = {"0" => 0, "1" => 0, "10000" => 0, "-1" => 0, "all" => 1}.freeze

  def setup
    @server = PumaServer.new(SETTINGS, workers: 2, preload: false, files: {"config.ru" => APPLICATION})
    @stream = @server.client.stream("GET", "#{@server.path}?match=/news&match=/given-on&last_event_id=earliest")
    # Numbers of each worker, as they came; and what came by the relay.
    @came = Hash.new { |came, worker| came[worker] = [] }
    @given_on = []
    @hub = @server.hub
  end

  def teardown
    @stream&.close
    @server&.stop
  end

  test "of a worker that is killed while it broadcasts, a whole prefix of its updates is there; the others' go on, and those of its successor begin" do
    dead = Array.new(3) do |round|
      after_death do |workers|
        victim = workers[round % 2]
        read("some of worker #{victim}") { @came[victim].size >= 40 }
        Process.kill(:KILL, victim)
      end
    end
    finish(dead) { 0..1 }
  end

  test "a worker that dies in the midst of a publish leaves all of it or nothing" do
    dead = PLACES.keys.to_h { |place| [after_death { @server.get("/die/#{place}") }, PLACES[place]] }
    assert_equal PLACES.size, dead.size
    finish(dead.keys) { |worker| dead[worker] }
  end

  test "what a client publishes through a worker that dies as it gives it on is there once, when the client says it again with its key" do
    dead = PLACES.keys.each_with_index.map do |place, round|
      key = {"idempotency-key" => "round-#{round}"}
      data = LongText.of("client", round)
      after_death do
        assert_raises(EOFError, place) { publish(data, key.merge("x-dies" => place)) }
        answer = publish(data, key)
        assert_equal 200, answer.status, answer.body
        read("what was said again") { @given_on.size > round }
      end
    end
    finish(dead) { 0..1 }
    assert_equal (0...PLACES.size).to_a, @given_on
  end

  private

  # Reads the stream until the block says that it is enough.
  def read(what, &enough)
    deadline = HttpClient.now + PATIENCE
    until (found = enough.call)
      flunk "waited too long for #{what}: #{@came.transform_values(&:size)}\n#{@server.log}" if HttpClient.now > deadline
      take unless @stream.silent?(0.05)
    end
    found
  end

  # No event but whole ones.
  def take
    event = @stream.next
    assert_equal "message", event.type
    who, number = LongText.read(event.data)
    (who == "client") ? @given_on << number : @came[who.to_i] << number
  end

  # The block is the death of a worker; waits until the other one and the new one broadcast.
  #
  # @return [Integer] the worker that has died
  def after_death
    workers = @server.workers
    read("updates of both") { workers.all? { |worker| @came.key?(worker) } }
    yield workers
    fresh = read("a new worker") { (@server.workers - workers).first }
    victim = (workers - @server.workers).first
    other = (workers - [victim]).first
    before = @came[other].size
    read("updates of worker #{other}, which lives, and of #{fresh}, which is new") { @came[fresh].size > 10 && @came[other].size > before + 10 }
    victim
  end

  # @yieldparam worker [Integer] one that has died
  # @yieldreturn [Integer, Range] how much of what it had no answer to is there
  def finish(dead)
    @server.write("stop", "")
    living = @server.workers
    read("the living to stop") { living.all? { |worker| File.exist?("#{@server.folder}/stopped-#{worker}") } }
    read("what they have published") { living.all? { |worker| @came[worker].size >= told(worker) } }
    assert_predicate @stream, :silent?
    assert_equal (dead + living).sort, @came.keys.sort
    @came.each { |worker, numbers| assert_equal (0...numbers.size).to_a, numbers, "of worker #{worker}" }
    living.each { |worker| assert_equal told(worker), @came[worker].size }
    dead.each { |worker| assert_operator yield(worker), :===, @came[worker].size - told(worker), "of worker #{worker}, which has died" }
    assert_equal @hub, @server.hub
  end

  # How many updates it knew to be published.
  def told(worker) = File.foreach("#{@server.folder}/told-#{worker}").count

  def publish(data, headers)
    @server.client.request("POST", @server.path, body: URI.encode_www_form(topic: "/given-on", data: data),
      headers: {"content-type" => "application/x-www-form-urlencoded", "authorization" => "Bearer #{AccessTokens.token(:publisher, "/given-on")}", **headers})
  end
end
