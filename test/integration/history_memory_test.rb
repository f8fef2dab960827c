# frozen_string_literal: true

require "open3"
require "rbconfig"
require "support/history_memory"
require "support/integration"

# What the setting `history` promises: what a process takes for it, of updates of several shapes. What else a process takes is
# part of the allowance.
class Integration::HistoryMemoryTest < Integration::Test
  MIB = 1024 * 1024
  HISTORY = 16 * MIB
  SMALLEST = 65_536
  MOST = 1.3 * HISTORY + 6 * MIB
  # Ruby's own, of updates that have gone: what all of them together would be is more.
  GARBAGE = 96 * MIB
  FILLER = File.expand_path("../support/history_filler.rb", __dir__)
  private_constant :MIB, :HISTORY, :SMALLEST, :MOST, :GARBAGE, :FILLER

  ["own topics", "ten own alternates", "ten own alternates, private, own ids, type", "one topic, own ids", "one topic, 100 KB"].each do |name|
    test "the engine in C takes no more memory than its history may: #{name}" do
      skip Sanitizers.missing || "sanitizers take memory of their own" if Sanitizers.wanted?
      filled = HistoryMemory.new(engine: "c", history: HISTORY, env: {"MALLOC_ARENA_MAX" => "1"})
      figures = filled.fill(HistoryMemory::SHAPES.fetch(name), rounds: 2)
      assert_operator figures[:counted], :<=, HISTORY
      assert_operator figures[:counted], :>, HISTORY * 0.9
      assert_operator figures[:most], :<, MOST, figures
    ensure
      filled&.stop
    end
  end

  # Updates that are more than the history holds: how many, and what they are.
  {
    "one topic" => [80_000, 10, 1, 0], "own topics" => [80_000, 10, 0, 1, "private"], "ten own alternates" => [32_000, 10, 1, 10, "numbered"],
    "one topic, 20 KB" => [8_000, 20_000, 1, 0]
  }.each do |name, shape|
    test "the engine in Ruby takes no more memory than its history may, beside what it takes without: #{name}" do
      without, with = [SMALLEST, HISTORY].map { |history| fill(history, shape) }
      counted = with[1]
      assert_operator without[0], :<, GARBAGE, "without a history it takes #{without[0] / MIB} MiB"
      assert_operator counted, :<=, HISTORY
      assert_operator counted, :>, HISTORY * 0.9
      assert_operator with[0] - without[0], :<, MOST, "#{with[0] / MIB} MiB, #{without[0] / MIB} MiB without"
    end
  end

  private

  def fill(history, shape)
    out, err, status = Open3.capture3({"MALLOC_ARENA_MAX" => "1"}, RbConfig.ruby, "-Ilib", FILLER, history.to_s, *shape.map(&:to_s))
    assert_predicate status, :success?, err
    out.lines.map(&:to_i)
  end
end
