# frozen_string_literal: true

require "test_helper"
require "hikyaku/codec/coding/contexts"

# Compressors that are used again.
class CodingContextsTest < Minitest::Test
  Contexts = Hikyaku::Codec::Coding::Contexts

  test "what was given back is taken again, and only then is something made" do
    made = 0
    contexts = Contexts.new { made += 1 }
    assert_equal [1, 2], [contexts.take, contexts.take]
    assert contexts.give(1)
    assert_equal [1, 3], [contexts.take, contexts.take]
  end

  test "no more are kept than it may keep" do
    contexts = Contexts.new(most: 2) { Object.new }
    assert_equal [true, true, false], Array.new(3) { contexts.take }.map { |context| contexts.give(context) }
    assert_equal 2, contexts.size
  end

  test "no two threads have the same at the same time" do
    contexts = Contexts.new { Mutex.new }
    threads = Array.new(8) do
      Thread.new do
        200.times do
          context = contexts.take
          assert context.try_lock, "somebody else has it"
          Thread.pass
          context.unlock
          contexts.give(context)
        end
      end
    end
    threads.each(&:join)
    assert_operator contexts.size, :<=, 8
  end
end
