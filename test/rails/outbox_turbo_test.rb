# frozen_string_literal: true

require "test_helper"
require "support/outbox/database"
require "support/turbo_application"

# Broadcasts of turbo-rails with an outbox: each is a row of the transaction that it is about.
class OutboxTurboTest < Minitest::Test
  include TurboApplication

  OutboxDatabase.migrate
  Hikyaku::Railtie::OutboxGlue.send(:extend_turbo)

  def setup
    super
    OutboxDatabase.clear
    @outbox = use(courier: false)
  end

  def teardown
    Hikyaku::Outbox.current = nil
    super
  end

  def use(**options)
    Hikyaku::Outbox.current = Hikyaku::Outbox.new(publish: ->(topics, data, **fields) { Hikyaku.publish(topics, data, outbox: false, **fields) }, **options)
  end

  test "what a model declares is stored before the commit, whatever becomes of the process after it" do
    model = declaring { broadcasts_to :board }
    message = Message.transaction do
      model.create!(body: "Hello", board: @board).tap { assert_equal 0, waiting }
    end
    assert_equal 1, waiting
    message.update!(body: "Bye")
    message.destroy!
    assert_empty Hikyaku::TestHelper.recorder.updates
    assert_equal %w[append replace remove], actions(published { @outbox.pass })
    assert_equal [true, Hikyaku::Turbo.topic(@board.to_gid_param)], Hikyaku::TestHelper.recorder.updates.map { |update| [update.private?, update.topics.first] }.uniq.first
  end

  test "what is rolled back, in whole or to a savepoint, or is only looked at, is not announced" do
    model = declaring { broadcasts_to :board }
    kept = model.create!(body: "kept", board: @board)
    Message.transaction do
      model.create!(body: "lost", board: @board)
      raise ActiveRecord::Rollback
    end
    Message.transaction do
      kept.lock!
      model.find(kept.id)
      Message.transaction(requires_new: true) do
        model.create!(body: "lost", board: @board)
        raise ActiveRecord::Rollback
      end
      assert_raises(ActiveRecord::RecordInvalid) { model.new(body: "lost", board: @board).tap { |one| def one.valid?(*) = false }.save! }
    end
    assert_equal 1, waiting
  end

  test "a record that is made and changed in one transaction is announced once, as it is at its end" do
    model = declaring { broadcasts_to :board }
    Message.transaction { model.create!(body: "first", board: @board).update!(body: "last") }
    updates = published { @outbox.pass }
    assert_match(/last/, updates.first.data)
    assert_equal 0, updates.grep(/first/).size
  end

  test "with `broadcasts` as well" do
    model = declaring { broadcasts "all" }
    message = model.create!(body: "Hello")
    message.update!(body: "Bye")
    message.destroy!
    assert_equal %w[append replace remove], actions(published { @outbox.pass })
  end

  test "many records that change together are one refresh of each stream" do
    model = declaring { broadcasts_refreshes_to :board }
    other = Board.create!(name: "Other")
    Message.transaction { 5.times { |n| model.create!(body: n.to_s, board: n.zero? ? other : @board) } }
    assert_equal 2, waiting
    model.create!(body: "later", board: @board)
    assert_equal 3, waiting
    assert_equal %w[refresh], actions(published { @outbox.pass }).uniq
  end

  test "a refresh that was rolled back to a savepoint does not stand for the one after it" do
    Message.transaction do
      Message.transaction(requires_new: true) do
        Message.create!
        Turbo::StreamsChannel.broadcast_refresh_later_to("x")
        raise ActiveRecord::Rollback
      end
      Turbo::StreamsChannel.broadcast_refresh_later_to("x")
    end
    assert_equal 1, waiting
  end

  test "what would be rendered later is rendered now in a transaction, and later without one" do
    jobs = ActiveJob::Base.queue_adapter
    ActiveJob::Base.queue_adapter = :test
    Message.transaction do
      message = Message.create!(body: "Hello", board: @board)
      message.broadcast_append_later_to(@board)
      Turbo::StreamsChannel.broadcast_render_later_to(@board, partial: "messages/news", locals: {message: message})
      Turbo::StreamsChannel.broadcast_remove_to("x", target: "y")
      assert_equal 3, waiting
    end
    assert_empty ActiveJob::Base.queue_adapter.enqueued_jobs
    Message.first.broadcast_append_later_to(@board)
    assert_equal [1, 3], [ActiveJob::Base.queue_adapter.enqueued_jobs.size, waiting]
  ensure
    ActiveJob::Base.queue_adapter = jobs
  end

  test "what is suppressed is not stored" do
    model = declaring { broadcasts_to :board }
    model.suppressing_turbo_broadcasts { model.create!(body: "Hello", board: @board) }
    assert_equal 0, waiting
  end

  test "in an application's tests what was committed is seen at once, in a transaction of the tests' own too" do
    use(inline: true)
    model = declaring { broadcasts_to :board }
    Message.transaction(joinable: false) do
      assert_equal %w[append], actions(published { model.create!(body: "Hello", board: @board) })
      updates = published do
        Message.transaction do
          Hikyaku.publish("/x", "1")
          Message.transaction(requires_new: true) { Hikyaku.publish("/x", "lost") and raise ActiveRecord::Rollback }
          assert_empty Hikyaku::TestHelper.recorder.updates.drop(1)
        end
      end
      assert_equal ["1"], updates.map(&:data)
      assert_equal 0, waiting
      raise ActiveRecord::Rollback
    end
  end

  test "a publish may go past the outbox" do
    updates = published do
      Message.transaction do
        Hikyaku.publish("/typing", "…", outbox: false)
        Hikyaku.publish("/kept", data: "stored")
        raise ActiveRecord::Rollback
      end
    end
    assert_equal ["…"], updates.map(&:data)
    assert_equal 0, waiting
  end

  test "without an outbox nobody can ask for one" do
    Hikyaku::Outbox.current = nil
    error = assert_raises(Hikyaku::ConfigError) { Hikyaku.publish("/x", outbox: true) }
    assert_match(/config\.hikyaku\.outbox = true/, error.message)
    assert_equal ["1"], published { Hikyaku.publish("/x", "1", outbox: false) }.map(&:data)
  end

  test "options that do not exist, or do not fit, stop the boot" do
    [{courier: "no"}, {corier: true}, "yes", {record: ActiveRecord::Base}].each do |value|
      error = assert_raises(Hikyaku::ConfigError, value.inspect) { Hikyaku::Railtie::OutboxGlue.send(:options_of, value) }
      assert_match(/config\.hikyaku\.outbox/, error.message)
    end
    [[nil, nil], [false, nil], [true, {}], [{courier: false, record: "Message"}, {"courier" => false, "record" => "Message"}]].each do |value, options|
      options.nil? ? assert_nil(Hikyaku::Railtie::OutboxGlue.send(:options_of, value)) : assert_equal(options, Hikyaku::Railtie::OutboxGlue.send(:options_of, value))
    end
  end

  private

  # Classes of the same table, declared when there is an outbox.
  def declaring(&block)
    Class.new(Message) do
      self.table_name = "messages"
      def self.name = "Message"
      class_eval(&block)
    end
  end

  def waiting = Hikyaku::Outbox.current.stats.waiting

  def actions(updates) = updates.map { |update| update.data[/action="(\w+)"/, 1] }
end
