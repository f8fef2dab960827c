# frozen_string_literal: true

require "test_helper"
require "support/outbox/database"
require "hikyaku/rails/outbox"

# Publishes that are part of a transaction: what is stored, what becomes of it, and in which order.
class OutboxTest < Minitest::Test
  Sale = OutboxDatabase::Sale
  Refused = Hikyaku::Publisher::Refused
  Unreachable = Hikyaku::Publisher::Unreachable
  MANY = 20_000 # rows: many times what a courier takes at once
  OutboxDatabase.migrate

  def setup
    OutboxDatabase.clear
    @outboxes = []
    @published = Queue.new
    @answer = ->(_topic) {}
  end

  def teardown = @outboxes.each { |outbox| outbox.courier.stop }

  # Publishes into a list, after the answer of the test's choice.
  def outbox(courier: false, poll_seconds: 0.05, **options)
    publish = lambda do |topics, data, **fields|
      @answer.call(topics.first)
      @published << [topics.first, data, fields]
    end
    Hikyaku::Outbox.new(publish: publish, courier: courier, poll_seconds: poll_seconds, **options).tap { |outbox| @outboxes << outbox }
  end

  def published = Array.new(@published.size) { @published.pop }

  def topics = published.map(&:first)

  def await(what, seconds: 30)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    until (value = yield)
      flunk "waited too long for #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.005
    end
    value
  end

  test "what a transaction published is there when it is committed, and nothing of one that is rolled back" do
    box = outbox
    Sale.transaction do
      Sale.create!(title: "Dune")
      box.publish("/books/1", {stock: 3})
      assert_equal 0, other_connection { box.stats.waiting }
    end
    Sale.transaction do
      box.publish("/books/2")
      raise ActiveRecord::Rollback
    end
    assert_equal 1, box.stats.waiting
    box.pass
    assert_equal [["/books/1", %({"stock":3})]], published.map { |topic, data, _| [topic, data] }
    assert_equal 0, box.stats.waiting
  end

  test "a savepoint that is rolled back takes its publishes along, and no others" do
    box = outbox
    Sale.transaction do
      box.publish("/outer")
      Sale.transaction(requires_new: true) do
        box.publish("/lost")
        raise ActiveRecord::Rollback
      end
      Sale.transaction(requires_new: true) { box.publish("/inner") }
      Sale.transaction { box.publish("/joined") }
    end
    box.pass
    assert_equal %w[/outer /inner /joined], topics
  end

  test "an update keeps all that it has, and every character" do
    box = outbox
    data = "\u0000 ☃ \u{1F989} \r\n \" \\ \u2028"
    id = box.publish(["/a", "/b"], data, private: true, id: "urn:1", type: "book", retry_after: 1500, idempotency_key: "mine")
    made = box.publish("/c")
    box.pass
    assert_equal "urn:1", id
    assert_match(/\Aurn:uuid:\h{8}-\h{4}-4\h{3}-\h{4}-\h{12}\z/, made)
    first, second = published
    assert_equal ["/a", data, {private: true, id: "urn:1", type: "book", retry_after: 1500, idempotency_key: "mine"}], first
    assert_equal made, second.last[:id]
    assert_equal made.delete_prefix("urn:uuid:"), second.last[:idempotency_key]
  end

  WRONG = {
    "no topic" => [[], {}, Hikyaku::InvalidUpdate],
    "a control character" => ["/a\u0000", {}, Hikyaku::InvalidTopic],
    "a reserved type" => ["/a", {type: "mercure"}, Hikyaku::InvalidUpdate],
    "an id of the hub's" => ["/a", {id: "#1"}, Hikyaku::InvalidUpdate],
    "bytes that are no text" => ["/a", {data: "\xff"}, Hikyaku::InvalidUpdate],
    "a key that no header carries" => ["/a", {idempotency_key: "a b"}, ArgumentError],
    "too much" => ["/a", {data: "x" * 151}, Hikyaku::LimitExceeded],
    "too much with its topic" => ["/#{"a" * 60}", {data: "x" * 90}, Hikyaku::LimitExceeded],
    "too many topics" => [%w[/a /b /c], {}, Hikyaku::LimitExceeded],
    "an id that no header carries" => ["/a", {id: "i" * 51}, Hikyaku::LimitExceeded],
    "a type that is too long" => ["/a", {type: "t" * 6}, Hikyaku::LimitExceeded]
  }.freeze

  test "what no hub would take is refused at once, and nothing is stored" do
    box = outbox(limits: Hikyaku::Hub::UpdateLimits.new(max_request_bytes: 150, max_topics: 2, max_id_bytes: 50, max_type_bytes: 5))
    WRONG.each do |what, (topics, options, error)|
      refusal = assert_raises(error, what) { box.publish(topics, options[:data] || "", **options.except(:data)) }
      assert_match(/more than the \d+ that max_\w+ allows/, refusal.message, what) if error == Hikyaku::LimitExceeded
    end
    assert_equal 0, box.stats.waiting
  end

  test "rows are published in the order of their commits" do
    box = outbox
    500.times { |n| box.publish("/#{n}") }
    outcome = box.pass until outcome && !outcome.more
    assert_equal Array.new(500) { |n| "/#{n}" }, topics
  end

  test "a failed publish leaves the row, and those behind it, for later" do
    box = outbox
    3.times { |n| box.publish("/#{n}") }
    @answer = ->(topic) { raise Unreachable, "no hub" if topic == "/1" }
    outcome = box.pass
    assert_kind_of Unreachable, outcome.error
    assert_equal ["/0"], topics
    @answer = ->(_) {}
    box.pass
    assert_equal %w[/1 /2], topics
  end

  test "a row that the hub will never take is set aside with the reason, and the others go on" do
    box = outbox
    4.times { |n| box.publish("/#{n}") }
    @answer = lambda do |topic|
      raise Refused.new("the hub refused the update with 400: topic", status: 400) if topic == "/1"
      raise Hikyaku::KeyReused, "used" if topic == "/2"
    end
    outcome = box.pass
    assert_equal [2, 2, nil], [outcome.published, outcome.set_aside, outcome.error]
    assert_equal %w[/0 /3], topics
    aside = box.set_aside
    assert_equal [["/1"], ["/2"]], aside.map(&:topics)
    assert_match(/Refused: the hub refused the update with 400/, aside.first.error)
    assert_equal [0, 2], box.stats.to_h.values_at(:waiting, :set_aside)

    box.pass
    assert_empty topics
    @answer = ->(_) {}
    assert_equal 2, box.retry_set_aside
    box.pass
    assert_equal %w[/1 /2], topics
    assert_equal 0, box.stats.set_aside
  end

  test "a row that is damaged is set aside too" do
    box = outbox
    box.publish("/1")
    ["no JSON", "[]", %({"topics": "x", "data": ""}), %({"topics": ["/x"]}), "null"].each do |payload|
      box.publish("/damaged")
      ActiveRecord::Base.connection.execute("UPDATE hikyaku_outbox SET payload = #{ActiveRecord::Base.connection.quote(payload)} WHERE id = (SELECT MAX(id) FROM hikyaku_outbox)")
    end
    box.publish("/2")
    assert_equal 5, box.pass.set_aside
    assert_equal %w[/1 /2], topics
    assert_equal [[]] * 5, box.set_aside.map(&:topics)
  end

  test "a row for which the hub has no clear answer is set aside when it takes others, and not before" do
    box = outbox
    box.publish("/1")
    @answer = ->(topic) { raise Hikyaku::Publisher::OutcomeUnknown, "502" if topic == "/1" }
    20.times { assert_equal [0, 0], box.pass.to_h.values_at(:published, :set_aside) }
    @answer = ->(_) { raise Hikyaku::Publisher::OutcomeUnknown, "502" }
    2.times { |n| box.publish("/#{n + 2}") }
    5.times { box.pass }
    assert_equal [3, 0], box.stats.to_h.values_at(:waiting, :set_aside)
    @answer = ->(topic) { raise Hikyaku::Publisher::OutcomeUnknown, "502" if topic == "/1" }
    box.pass
    assert_equal %w[/2 /3], topics
    assert_equal [["/1"]], box.set_aside.map(&:topics)
    assert_match(/OutcomeUnknown: 502/, box.set_aside.first.error)
  end

  test "however long the hub is away, no row is set aside" do
    box = outbox
    2.times { |n| box.publish("/#{n}") }
    @answer = ->(_) { raise Unreachable, "no hub" }
    30.times { box.pass }
    @answer = ->(_) {}
    box.pass
    assert_equal %w[/0 /1], topics
  end

  test "the courier takes a row to the hub as soon as it is committed, and not before" do
    box = outbox(courier: true, poll_seconds: 60)
    Sale.transaction do
      box.publish("/1")
      sleep 0.05
      assert_equal 0, @published.size
    end
    assert_equal "/1", await("the courier") { @published.pop(true) if @published.size > 0 }.first
    box.publish("/2")
    assert_equal "/2", await("the courier") { @published.pop(true) if @published.size > 0 }.first
  end

  test "a courier that serves finds the rows of others" do
    box = outbox(courier: true)
    box.serve
    other = outbox
    other.publish("/1")
    assert_equal "/1", await("the courier") { @published.pop(true) if @published.size > 0 }.first
    await("the row to go") { other.stats.waiting.zero? }
  end

  test "while the hub is away everything waits; when it is back everything arrives in order, and the log has one line of each" do
    log = StringIO.new
    box = outbox(courier: true, logger: Logger.new(log))
    @answer = ->(_) { raise Unreachable, "connection refused" }
    20.times { |n| box.publish("/#{n}") }
    await("an attempt") { log.string.include?("updates wait") }
    20.times { |n| box.publish("/#{n + 20}") }
    @answer = ->(_) {}
    await("all") { @published.size >= 40 }
    assert_equal Array.new(40) { |n| "/#{n}" }, topics
    await("the word") { log.string.include?("emptied again") }
    assert_equal 1, log.string.scan("updates wait").size
  end

  test "a process that knows no hub leaves its rows to others, and does not ask again" do
    asked = 0
    box = Hikyaku::Outbox.new(publish: ->(*, **) { asked += 1 and raise Hikyaku::NoHub, "nobody" })
    @outboxes << box
    box.publish("/1")
    await("the courier to go home") { asked > 0 && !box.courier.alive? }
    box.publish("/2")
    sleep 0.05
    assert_equal 1, asked
    assert_equal 2, box.stats.waiting
  end

  test "several couriers at once publish each row once, those of one process in order" do
    boxes = Array.new(4) { outbox }
    origins = %w[a b c]
    origins.each { |origin| store(origin, 400) }
    seen = Queue.new
    @answer = ->(topic) { seen << topic and Thread.pass }
    Array.new(4) { |n| Thread.new { drain(boxes[n]) } }.each(&:join)
    all = Array.new(seen.size) { seen.pop }
    assert_equal all.uniq.size, all.size
    origins.each { |origin| assert_equal Array.new(400) { |n| "/#{origin}/#{n}" }, all.select { |topic| topic.start_with?("/#{origin}/") } }
  end

  test "rows whose courier has died are another's when the lease is over" do
    box = outbox
    3.times { |n| box.publish("/#{n}") }
    execute("UPDATE hikyaku_outbox SET lease = 'dead', leased_until = #{quote(Time.now + 3600)} WHERE id = (SELECT MIN(id) FROM hikyaku_outbox)")
    box.pass
    assert_empty topics, "what is behind a row of the same process waits for it"
    execute("UPDATE hikyaku_outbox SET leased_until = #{quote(Time.now - 1)} WHERE lease = 'dead'")
    box.pass
    assert_equal %w[/0 /1 /2], topics
  end

  test "a process that is forked has a courier and an order of its own" do
    box = outbox(courier: true)
    box.serve
    reader, writer = IO.pipe
    @answer = ->(topic) { writer.puts("#{Process.pid} #{topic}") }
    pid = fork do
      box.courier.forked
      box.publish("/child")
      await("the row to go") { box.stats.waiting.zero? }
      exit!(0)
    end
    Process.wait(pid)
    assert_equal 0, $?.exitstatus
    assert_match(/\A\d+ \/child\n\z/, reader.gets)
  end

  test "many rows are published in order, each once" do
    box = outbox
    quietly { store("one", MANY) }
    count = 0
    in_order = true
    @answer = lambda do |topic|
      in_order &&= topic == "/one/#{count}"
      count += 1
    end
    quietly { drain(box) }
    assert in_order
    assert_equal MANY, count
    assert_equal 0, box.stats.waiting
  end

  test "where the table is missing, the error says what to do" do
    ActiveRecord::Base.connection.rename_table(:hikyaku_outbox, :elsewhere)
    error = assert_raises(Hikyaku::ConfigError) { outbox.publish("/1") }
    assert_match(/bin\/rails generate hikyaku:outbox/, error.message)
  ensure
    ActiveRecord::Base.connection.rename_table(:elsewhere, :hikyaku_outbox)
  end

  private

  # Without a log of each statement.
  def quietly
    before = ActiveRecord::Base.logger
    ActiveRecord::Base.logger = nil
    yield
  ensure
    ActiveRecord::Base.logger = before
  end

  def other_connection(&block) = Thread.new(&block).value

  def execute(sql) = ActiveRecord::Base.connection.execute(sql)

  def quote(value) = ActiveRecord::Base.connection.quote(value.utc.strftime("%F %T.%6N"))

  # Rows as another process has written them.
  def store(origin, count)
    count.times.each_slice(500) do |numbers|
      values = numbers.map { |n| "('#{origin}', '#{origin}-#{n}', '{\"topics\":[\"/#{origin}/#{n}\"],\"data\":\"\"}', 0, '2026-01-01')" }
      execute("INSERT INTO hikyaku_outbox (origin, idempotency_key, payload, attempts, created_at) VALUES #{values.join(", ")}")
    end
  end

  def drain(box)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 120
    loop do
      next if box.pass.more
      return if box.stats.waiting.zero?
      flunk "the outbox is not emptied" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.01
    end
  end
end
