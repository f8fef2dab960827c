# frozen_string_literal: true

# What happens because time passes.
EngineContract.tests do
  test "a silent stream gets a comment, a busy one does not" do
    @engine = make_engine(heartbeat: 10)
    quiet, busy = subscribe(exact("/quiet")), subscribe(exact("/busy"))
    drain
    24.times do
      @now += 0.5
      publish("/busy")
      @engine.tick(now: @now)
      drain
    end
    assert_equal ":\n\n", quiet.connection.received
    refute_includes busy.connection.received, ":\n\n"
  end

  test "a stream ends before its grant does (draft-08, Subscribers)" do
    reader = subscribe(exact("/a"), expires_in: 5)
    @now += 4.5
    @engine.tick(now: @now)
    assert_empty drain
    assert_operator @engine.next_tick, :<=, 1005
    @now = 1004.95
    @engine.tick(now: @now)
    assert_equal [reader], drain
    assert_equal :expired, reader.closing
  end

  test "a stream ends after the longest lifetime, some a little earlier (draft-08, Subscribers)" do
    @engine = make_engine(max_lifetime: 100)
    reader = subscribe(exact("/a"))
    @now += 89
    @engine.tick(now: @now)
    assert_empty drain
    @now += 11.1
    @engine.tick(now: @now)
    assert_equal [reader], drain
    assert_equal :lifetime, reader.closing
  end
end
