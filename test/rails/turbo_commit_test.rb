# frozen_string_literal: true

require "test_helper"
require "support/turbo_application"

# A broadcast says what is so: it leaves when the transaction in which it was made has committed, and never when it has not.
class TurboCommitTest < Minitest::Test
  include TurboApplication

  # A queue that waits for nothing, as most are where Rails does not make jobs wait.
  class ImpatientAdapter
    attr_reader :jobs

    def initialize = @jobs = []

    def enqueue(job) = @jobs << job

    def enqueue_at(job, _time) = @jobs << job

    def enqueue_after_transaction_commit? = false
  end

  # A database of its own.
  class Elsewhere < ActiveRecord::Base
    self.abstract_class = true
    establish_connection adapter: "sqlite3", database: "#{RailsApplication::FOLDER}/elsewhere.sqlite3"
    connection.create_table(:things, force: true) { |table| table.string :name }
  end

  class Thing < Elsewhere
    self.table_name = "things"
  end

  test "a broadcast in a transaction is sent after the commit, when others see what it is about" do
    stream = follow(sign(@board))
    Message.transaction do
      message = Message.create!(body: "Hello", board: @board)
      message.broadcast_append_to(@board)
      assert stream.silent?
      assert_equal 0, elsewhere { Message.count }
    end
    assert_match(/Hello/, received(stream).to_html)
    assert_equal 1, elsewhere { Message.count }
  end

  test "of a transaction that is rolled back nothing is sent" do
    updates = published do
      Message.transaction do
        broadcast("lost")
        broadcast_later("lost as well")
        raise ActiveRecord::Rollback
      end
      assert_raises(RuntimeError) { Message.transaction { broadcast("lost").then { raise "away" } } }
      broadcast("kept")
    end
    assert_equal ["kept"], targets(updates)
  end

  test "a record that is not saved is not announced" do
    updates = published do
      Message.transaction do
        Announced.create!(body: "lost", board: @board)
        raise ActiveRecord::Rollback
      end
      assert_equal 0, Message.count
    end
    assert_empty updates
  end

  test "several leave in the order in which they were made" do
    updates = published do
      Message.transaction do
        broadcast("1")
        broadcast_later("2")
        Message.transaction { broadcast("3") }
        broadcast("4")
      end
    end
    assert_equal %w[1 2 3 4], targets(updates)
  end

  test "what is nested waits for the outermost, and a savepoint that is rolled back takes its own along" do
    updates = published do
      Message.transaction do
        Message.create!
        Message.transaction(requires_new: true) { Message.create!.then { broadcast("kept") } }
        Message.transaction(requires_new: true) do
          Message.create!
          broadcast("lost")
          raise ActiveRecord::Rollback
        end
        broadcast("last")
        assert_empty Hikyaku::TestHelper.recorder.updates
      end
    end
    assert_equal %w[kept last], targets(updates)
  end

  test "the outermost that is rolled back takes all along" do
    updates = published do
      Message.transaction do
        Message.create!
        Message.transaction(requires_new: true) { Message.create!.then { broadcast("lost") } }
        raise ActiveRecord::Rollback
      end
    end
    assert_empty updates
  end

  test "with two databases a broadcast waits for both" do
    updates = published do
      Message.transaction do
        Message.create!
        Thing.transaction do
          Thing.create!(name: "x")
          broadcast("both")
        end
        assert_empty Hikyaku::TestHelper.recorder.updates
      end
      Message.transaction do
        Message.create!
        Thing.transaction { Thing.create!.then { broadcast("lost") } }
        raise ActiveRecord::Rollback
      end
    end
    assert_equal ["both"], targets(updates)
  end

  test "a job that broadcasts is enqueued after the commit: before it, it might find nothing" do
    before = ActiveJob::Base.queue_adapter
    adapter = ImpatientAdapter.new
    ActiveJob::Base.queue_adapter = adapter
    Message.transaction do
      message = Message.create!(body: "Hello")
      message.broadcast_append_later_to("x")
      message.broadcast_render_later_to("x", partial: "messages/news")
      message.broadcast_refresh_later_to("x")
      assert_empty adapter.jobs
    end
    jobs = [Turbo::Streams::ActionBroadcastJob, Turbo::Streams::BroadcastJob, Turbo::Streams::BroadcastStreamJob]
    assert_equal jobs, adapter.jobs.map(&:class)
    Message.transaction do
      Message.create!(body: "Hello").broadcast_append_later_to("x")
      raise ActiveRecord::Rollback
    end
    assert_equal 3, adapter.jobs.size
  ensure
    ActiveJob::Base.queue_adapter = before
  end

  test "content is that of the moment of the broadcast" do
    stream = follow(sign("x"))
    Message.transaction do
      message = Message.create!(body: "first")
      message.broadcast_replace_to("x")
      message.update!(body: "second")
      message.broadcast_replace_to("x")
    end
    assert_match(/first/, received(stream).to_html)
    assert_match(/second/, received(stream).to_html)
  end

  test "a transaction that was begun as the tests' own, which is never committed, does not count" do
    Message.transaction(joinable: false) do
      Message.create!
      assert_equal ["now"], targets(published { broadcast("now") })
      inner = published do
        Message.transaction do
          Message.create!
          broadcast("then")
          refute_includes targets(Hikyaku::TestHelper.recorder.updates), "then"
        end
      end
      assert_equal ["then"], targets(inner)
      raise ActiveRecord::Rollback
    end
  end

  test "a transaction of another thread holds nobody up" do
    opened, done = Queue.new, Queue.new
    thread = Thread.new do
      Message.transaction do
        Message.count
        opened << true
        done.pop
      end
    end
    opened.pop
    assert_equal ["mine"], targets(published { broadcast("mine") })
  ensure
    done << true
    thread&.join
  end

  test "what the hub does not take raises after the commit, which stays" do
    assert_raises(Hikyaku::InvalidUpdate) do
      Message.transaction do
        Message.create!(body: "stays")
        Turbo::StreamsChannel.broadcast_stream_to("x", content: "\xFF")
      end
    end
    assert_equal 1, elsewhere { Message.count }
  end

  test "with config.hikyaku.after_commit = false nothing waits" do
    with_turbo(after_commit: false) do
      updates = published do
        Message.transaction do
          Message.create!
          broadcast("at once")
          broadcast_later("this too")
          raise ActiveRecord::Rollback
        end
      end
      assert_equal ["at once", "this too"], targets(updates)
    end
  end

  private

  def broadcast(target) = Turbo::StreamsChannel.broadcast_remove_to("x", target: target)

  def broadcast_later(target) = Turbo::StreamsChannel.broadcast_action_later_to("x", action: :remove, target: target)

  def targets(updates) = updates.map { |update| update.data[/target="([^"]+)"/, 1] }

  # As another connection sees it.
  def elsewhere(&block) = Thread.new { ActiveRecord::Base.connection_pool.with_connection { block.call } }.value
end
