# frozen_string_literal: true

require_relative "../running_hub"
require_relative "processes"

# Processes with an outbox that are killed, and a hub that goes and comes back; for any database. After OutboxProcesses.
module OutboxStories
  PATH = "/.well-known/mercure"
  PATIENCE = OutboxProcesses::PATIENCE
  private_constant :PATH, :PATIENCE

  def setup
    @hub = RunningHub.new("--storage", Dir.mktmpdir("hikyaku-storage").tap { |folder| @storage = folder }, "--history", "64MiB")
    super
  end

  def teardown
    super
    @hub&.stop("KILL")
    FileUtils.rm_rf(@storage) if @storage
  end

  def environment = {**super, "HUB" => @hub.url}

  # @return [Array<String>] the data of all that was published, in order
  def published
    empty = process(:empty)
    assert empty.status(PATIENCE).success?, empty.errors
    @hub.publish({topic: "/end", data: "the end"})
    stream = HttpClient.new(@hub.port).stream("GET", "#{PATH}?match_urlpattern=*&match=/end&last_event_id=earliest", headers: {"authorization" => "Bearer #{@hub.token(subscribe: ["*"])}"})
    stream.until("the end", PATIENCE).map(&:data)
  ensure
    stream&.close
  end

  def self.included(tests)
    tests.class_eval do
      %w[before after].each do |moment|
        test "a process that dies after the commit, #{moment} the publish: what was committed is published, once and in order" do
          dying = process(:sell, "/1", "/2", "/3", DIES: moment, FATAL: "/2")
          assert_equal 9, dying.status(PATIENCE).termsig
          assert_match(/committed/, dying.output)
          look_at_what_is_left
          assert_equal %w[/1 /2 /3], published
        end
      end

      test "processes that trade and are killed at any time, beside others that carry: every commit is published, once, in order, and nothing else" do
        carriers = Array.new(2) { process(:carry) }
        names = Array.new(3) { |n| "trader#{n}" }
        traders = names.to_h { |name| [name, process(:trade, name)] }
        traders.each_value { |trader| trader.until(nil, PATIENCE) { |output| output.count("\n") >= 20 } }
        traders.each_value.with_index do |trader, n|
          sleep 0.1
          trader.signal("KILL")
          carriers[n]&.signal("KILL")
        end
        assert_traded(traders, published)
      end
    end
  end

  # What is the courier's and not the database's: for one of them.
  module Couriers
    def self.included(tests)
      tests.class_eval do
        test "a hub that is away for a while: nothing fails, nothing is lost, and all arrives in order when it is back" do
          @hub.stop
          first = process(:sell, "/1", "/2")
          first.until(/committed/, PATIENCE)
          second = process(:sell, "/3")
          second.until(/committed/, PATIENCE)
          await("a word about it") { first.errors.include?("updates wait in the outbox") }
          first.signal("KILL")
          @hub.start
          assert_equal %w[/1 /2 /3], published.sort
          await("a word about it") { second.errors.include?("being emptied again") || second.errors.empty? }
        end

        test "a process of its own carries, and ends when it is told to" do
          carrying = process(:carry)
          carrying.until(/carrying/, PATIENCE)
          selling = process(:sell, "/1")
          selling.until(/committed/, PATIENCE)
          selling.signal("KILL")
          assert_equal %w[/1], published
          carrying.signal("TERM")
          assert carrying.status(PATIENCE).success?
          assert_match(/ended/, carrying.output)
        end
      end
    end
  end

  private

  # After the death of a process, and before anybody else publishes: for what is particular to a database.
  def look_at_what_is_left
  end

  # Of each, what it said was committed, and perhaps one more transaction; each of these whole.
  def assert_traded(traders, all)
    assert_equal all.size, all.uniq.size, "something was published twice"
    assert_empty all.grep(/rolled back/)
    traders.each do |name, trader|
      trader.status(PATIENCE)
      committed = trader.lines.map(&:to_i)
      got = all.select { |data| data.start_with?("#{name} ") }
      numbers = got.map { |data| data[/ (\d+)/, 1].to_i }.uniq
      assert_equal numbers.flat_map { |n| ["#{name} #{n}a", "#{name} #{n}b"] }, got
      assert_equal numbers.sort, numbers
      assert_empty committed - numbers
      assert_operator (numbers - committed).size, :<=, 1
    end
  end
end
