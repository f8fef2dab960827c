# frozen_string_literal: true

require "support/native_test"
require "support/soak"

# A minute among clients of all kinds. HIKYAKU_TEST_SOAK_SECONDS says how long, HIKYAKU_TEST_SEED which minute.
class Integration::NativeSoakTest < Integration::NativeTest
  parallelize_me! # beside the other tests that take a minute

  SECONDS = Float(ENV.fetch("HIKYAKU_TEST_SOAK_SECONDS", "60"))
  SEED = Integer(ENV.fetch("HIKYAKU_TEST_SEED") { Random.new_seed % 1_000_000 })
  ROUNDS = 4
  # Caches are bounded, and fill in so many at most.
  MAX_ROUNDS = 16
  MIB = 1024 * 1024
  # What the second half may add to the memory of the first, in which it settles: Ruby's heap breathes. It is less than fifty
  # bytes for each publish.
  MARGIN = MIB / 4
  HISTORY = 16 * MIB
  private_constant :SECONDS, :SEED, :ROUNDS, :MAX_ROUNDS, :MIB, :MARGIN, :HISTORY

  test "a minute of random clients, good and bad: every event once and in order, and in the end the files and the memory of the beginning" do
    hub = start_native("--history", HISTORY.to_s, "--subscriptions", "--heartbeat", "1", "--write-timeout", "2", "--max-lifetime", "6", "--max-connections-per-address", "2000",
      env: {"MALLOC_ARENA_MAX" => "1"}) # else it is chance which thread's arena grows, and stays
    fill_history(hub)
    files = at_rest(hub)
    soak = Soak.new(hub, seed: SEED)
    memory = Array.new(ROUNDS) { round(hub, soak, files) }
    memory << round(hub, soak, files) while growth(memory).min >= MARGIN && memory.size < MAX_ROUNDS && SECONDS >= 30
    puts "\nsoak of #{SECONDS.round} s, seed #{SEED}: #{soak.done.map { |name, count| "#{count} #{name}" }.join(", ")}; memory after each round: #{memory.map { |bytes| "#{bytes / 1024} KiB" }.join(", ")}"
    soak.done.each { |name, count| assert_operator count, :>, 0, name }
    # A leak grows in each round; a page that the heap takes once is none.
    assert_operator growth(memory).min, :<, MARGIN, "it grows" if SECONDS >= 30 && !Sanitizers.wanted?
    assert_well hub
    assert_equal 0, hub.stop.exitstatus
  end

  private

  def growth(memory) = memory.each_cons(2).map { |before, after| after - before }

  # @return [Integer] bytes of memory when all have gone
  def round(hub, soak, files)
    soak.begin
    sleep SECONDS / ROUNDS
    soak.stop
    assert_equal files, at_rest(hub), "seed #{SEED}"
    hub.memory
  end

  # What is open when nobody is there.
  #
  # @return [Hash{String => Integer}] how many files of each kind
  def at_rest(hub)
    eventually("the end of all connections, seed #{SEED}") { hub.metrics.values_at("connections", "subscribers") == [1, 0] }
    eventually("rest") do
      before = kinds(hub.descriptors)
      sleep 0.1
      before if kinds(hub.descriptors) == before
    end
  end

  def kinds(files) = files.map { |file| file[/\A\w+:/] || file }.tally

  # So that its pages are there, and not taken for growth.
  def fill_history(hub)
    connection = connect(hub)
    piece = publication("topic=#{Soak::BOOK}/fill&data=#{"x" * 20_000}", token: hub.publisher)
    (2 * HISTORY / piece.bytesize / 10).times do
      connection.write(piece * 10)
      10.times { assert_equal 200, answer(connection).status }
    end
    connection.close
  end
end
