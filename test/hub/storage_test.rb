# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "hikyaku/hub"

class StorageTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir("storage")
    @milliseconds = 1_000_000
    @storage = Hikyaku::Hub::Storage.new(@folder, history: 1 << 20, age: 10, clock: -> { @milliseconds })
    @storage.open(lose: ->(*) {}) {}
  end

  def teardown
    @storage.close
    FileUtils.rm_rf(@folder)
  end

  def append(count = 1)
    update = Hikyaku::Hub::Update.new(topics: "/a", data: "x")
    count.times { @storage.append(update, topics: update.topics, type: nil) }
  end

  test "updates are retained as long as the age says, to within a second, however many came in one second" do
    append(3)
    @milliseconds += 5_000
    append(2)
    @milliseconds += 5_000
    assert_equal 0, @storage.retained_from, "none is older than ten seconds"
    @milliseconds += 1_000
    assert_equal 4, @storage.retained_from, "all three of the first second are"
    @milliseconds += 5_000
    assert_equal 6, @storage.retained_from
  end

  test "a clock that was set back retains no update longer than the one before it" do
    append
    @milliseconds -= 60_000
    append
    @milliseconds += 71_000
    assert_equal 3, @storage.retained_from
  end
end
