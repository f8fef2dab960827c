# frozen_string_literal: true

require "test_helper"
require "rbconfig"
require "support/client_process"
require "support/running_broker"
require "timeout"
require "tmpdir"

# The examples do what their first lines say.
class BrokerExamplesTest < Minitest::Test
  EXAMPLES = File.expand_path("../../examples", __dir__)
  ENGINE = {"HIKYAKU_ENGINE" => ENV.fetch("HIKYAKU_TEST_ENGINE", "c")}.freeze

  def run_example(name, env: {})
    process = ClientProcess.new(RbConfig.ruby, File.join(EXAMPLES, name), env: ENGINE.merge(env))
    status = process.status(90)
    assert status.success?, "#{name}: #{process.output}#{process.errors}"
    process.output
  ensure
    process&.close
  end

  test "the worker pool loses nothing to those who kill its workers" do
    output = run_example("worker_pool.rb")
    assert_match(/^([4-9]|\d\d) workers were killed\.$/, output)
    assert_match(/^99 of 100 messages are done, \d+ of them twice\.$/, output)
    assert_match(/^Dead letter: deadly, after 3 crashes\.$/, output)
  end

  # Processes that have inherited this folder for what is temporary; one that has ended has no environment.
  def running(folder)
    Dir["/proc/[0-9]*/environ"].filter_map do |path|
      path[/\d+/].to_i if File.read(path).split("\0").include?("TMPDIR=#{folder}")
    rescue SystemCallError
      nil # gone meanwhile, or somebody else's
    end
  end

  # The pool at work: with its broker, what guards that, and three workers.
  def begin_pool(folder)
    pool = ClientProcess.new(RbConfig.ruby, File.join(EXAMPLES, "worker_pool.rb"), env: ENGINE.merge("TMPDIR" => folder, "HIKYAKU_BROKER_ADDRESS" => nil), pgroup: true)
    pool.until(/at work/)
    assert_operator running(folder).size, :>=, 5
    yield pool
  ensure
    running(folder).each { |pid| Process.kill(:KILL, pid) } if pool
    pool&.close
  end

  # INT comes from a keyboard to all of them, or to the pool alone.
  {"TERM to the pool" => ["TERM", 1], "TERM to all" => ["TERM", -1], "INT to the pool" => ["INT", 1], "INT to all" => ["INT", -1]}.each do |name, (signal, sign)|
    test "the worker pool leaves nobody and nothing behind after #{name}, and complains of nothing" do
      Dir.mktmpdir do |folder|
        begin_pool(folder) do |pool|
          Process.kill(signal, sign * pool.pid)
          status = pool.status
          assert_equal 128 + Signal.list[signal], status.exitstatus, pool.errors
          Timeout.timeout(60) { sleep 0.05 until running(folder).empty? }
          assert_empty Dir.children(folder).grep(/hikyaku/)
          assert_empty pool.errors
        end
      end
    end
  end

  test "the worker pool's workers and its broker end when it was killed" do
    Dir.mktmpdir do |folder|
      begin_pool(folder) do |pool|
        pool.signal("KILL")
        pool.status
        Timeout.timeout(60) { sleep 0.05 until running(folder).empty? }
        assert_empty pool.errors
      end
    end
  end

  test "requests have their replies" do
    assert_equal Array.new(5) { |index| "#{index} + #{index} + 1 = #{2 * index + 1}\n" }.join, run_example("request_reply.rb")
  end

  test "an example uses the broker that the environment names" do
    broker = RunningBroker.new
    run_example("request_reply.rb", env: {"HIKYAKU_BROKER_ADDRESS" => broker.address})
    assert_equal 5, broker.client { |client| client.queues("sums").first["freed"] }
  ensure
    broker&.close
  end
end
