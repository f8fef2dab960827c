# frozen_string_literal: true

require "socket"
require_relative "access_tokens"
require_relative "http_client"
require_relative "native_hub"

# Clients of every kind, good and bad, that do to a hub what clients do, at random, until they are told to stop; and readers that
# hold it to its promise: each event once, in order, however often they have to come back.
#
#     soak = Soak.new(hub, seed: 1)
#     soak.begin
#     sleep 10
#     soak.stop          # raises what went wrong
#     soak.done          # => {"publish in one go" => 123, ...}
class Soak
  PATH = NativeHub::PATH
  BOOK = "https://example.com/soak"
  END_OF_ALL = "the end"
  FORM = "application/x-www-form-urlencoded"
  # Of each kind, how many do it at once.
  KINDS = {
    publish_one_by_one: 2, publish_in_one_go: 1, publish_and_drop: 1, come_and_go: 2, reset: 1, close_half: 1, read_slowly: 2, read_nothing: 1, dribble: 1,
    talk_nonsense: 1, expire: 1, disconnect: 1, ask_ruby: 1, stay_idle: 1
  }.freeze
  FAITHFUL = 3
  TOKENS = 100
  private_constant :KINDS, :FAITHFUL, :TOKENS

  # What one publisher publishes: series of numbers, each once and in order; and what of it was acknowledged.
  Ledger = Struct.new(:name, :series, :last, :acknowledged) do
    # Nobody has promised that what was not acknowledged comes before what follows on another connection.
    def begin_series = self.series += 1

    def next_data = "#{name}/#{series} #{self.last += 1}"
  end

  # @return [Hash{String => Integer}] how often each thing was done
  attr_reader :done

  # @param hub [NativeHub]
  # @param seed [Integer]
  def initialize(hub, seed:)
    @hub = hub
    @seed = seed
    @done = Hash.new(0)
    @lock = Mutex.new
    @ledgers = []
    @rounds = 0
    @tokens = Array.new(TOKENS) { |number| AccessTokens.token(:publisher, "*", sub: "publisher-#{number}", exp: Time.now.to_i + 3_600) }
  end

  # @return [void]
  def begin
    @stopping = false
    @rounds += 1
    start = @hub.publish("#{BOOK}/faithful", "the start")
    @readers = Array.new(FAITHFUL) { |number| FaithfulReader.new(@hub, Random.new(@seed + number), after: start) }
    @readers.each(&:begin)
    @threads = KINDS.flat_map { |kind, count| Array.new(count) { |number| play(kind, number) } }
  end

  # Ends the clients, and holds the readers to what was published.
  #
  # @return [void]
  # @raise [RuntimeError]
  def stop
    @stopping = true
    @threads.each { |thread| thread.join(180) || raise("a client hangs: #{thread.name}\n#{thread.backtrace.join("\n")}") }
    @hub.publish("#{BOOK}/faithful", END_OF_ALL)
    histories = @readers.map(&:finish)
    check(histories)
    count("come back", @readers.sum(&:returns))
    count("read", histories.first.size)
  end

  private

  def play(kind, number)
    random = Random.new(@seed + KINDS.keys.index(kind) * 100 + number)
    Thread.new do
      Thread.current.name = kind.to_s
      Thread.current.report_on_exception = false
      actor = Actor.new(@hub, @tokens, random)
      ledger = @lock.synchronize { Ledger.new("#{kind}-#{number}", @rounds * 1_000_000, 0, []).tap { |new| @ledgers << new } }
      until @stopping
        count(kind.to_s.tr("_", " "), actor.public_send(kind, ledger))
        sleep random.rand * 0.05
      end
    end
  end

  def count(name, by)
    @lock.synchronize { @done[name] += by }
  end

  # All have the same, in the same order; every series in its order; what was acknowledged, and nothing twice.
  def check(histories)
    raise "readers got different things" unless histories.uniq.one?
    history = histories.first
    raise "got twice: #{history.tally.select { |_, count| count > 1 }.first(3)}" unless history.uniq.size == history.size
    history.map { |data| data.split(" ") }.group_by(&:first).each do |series, numbers|
      numbers = numbers.map { |_, number| number.to_i }
      raise "#{series}: out of order" unless numbers == numbers.sort
    end
    lost = @ledgers.flat_map(&:acknowledged) - history
    raise "acknowledged, and lost: #{lost.first(3)}" if lost.any?
    @ledgers.clear
  end
end

require_relative "soak/actor"
require_relative "soak/faithful_reader"
