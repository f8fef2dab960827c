# frozen_string_literal: true

# A made-up stock exchange: prices wander by themselves, and rise when somebody buys. Whoever made it is told of each new
# quote.
class Market
  # Prices in hundredths: sums of floats are not exact.
  Stock = Struct.new(:symbol, :name, :price, :opening, :volume) do
    def quote = {symbol: symbol, name: name, price: price, change: price - opening, volume: volume}
  end

  LISTED = {"NIHON" => ["Nihonbashi Couriers", 48_20], "HAKON" => ["Hakone Passes", 12_75], "KUWAN" => ["Kuwana Ferries", 8_40],
            "SANJO" => ["Sanjo Bridge", 97_10]}.freeze
  LARGEST_ORDER = 10_000

  # @yieldparam quote [Hash]
  def initialize(&announce)
    @announce = announce
    @stocks = LISTED.to_h { |symbol, (name, price)| [symbol, Stock.new(symbol, name, price, price, 0)] }
    @lock = Mutex.new
  end

  # @return [Array<Hash>]
  def quotes = @lock.synchronize { @stocks.values.map(&:quote) }

  # @param symbol [String]
  # @param shares [Integer, nil]
  # @return [Hash, nil] the new quote; nil when there is no such stock, or nobody could have so many shares
  def buy(symbol, shares)
    return unless @stocks.key?(symbol) && (1..LARGEST_ORDER).cover?(shares)
    change(symbol) do |stock|
      stock.price += 1 + shares / 100
      stock.volume += shares
    end
  end

  # @param every [Numeric] seconds
  # @return [Thread] in which prices wander
  def open(every: 0.5)
    Thread.new do
      loop do
        sleep every
        change(@stocks.keys.sample) { |stock| stock.price = [stock.price + rand(-25..25), 1].max }
      end
    end
  end

  private

  # Announced under the lock, so that quotes arrive in the order in which they were made.
  def change(symbol)
    @lock.synchronize do
      stock = @stocks.fetch(symbol)
      yield stock
      stock.quote.tap { |quote| @announce.call(quote) }
    end
  end
end
