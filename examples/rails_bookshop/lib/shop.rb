# frozen_string_literal: true

# The shelves, the door and the till, kept in memory. Whatever changes is published.
#
# In lib, not in app: the stock must outlive the reloading of code.
module Shop
  Book = Struct.new(:id, :title, :author, :price, :stock, keyword_init: true)

  SHELF = [
    Book.new(id: 1, title: "The Pillow Book", author: "Sei Shōnagon", price: 14, stock: 5),
    Book.new(id: 2, title: "Narrow Road to the Interior", author: "Matsuo Bashō", price: 12, stock: 3),
    Book.new(id: 3, title: "Kokoro", author: "Natsume Sōseki", price: 11, stock: 8)
  ].freeze

  @lock = Mutex.new
  @takings = 0
  @visitors = 4

  class << self
    attr_reader :takings, :visitors

    def books = SHELF

    def sell(id) = move(id, -1)

    def take_back(id) = move(id, +1)

    # People come and go.
    def open_door(every: 2)
      Thread.new do
        loop do
          sleep every
          @visitors = (@visitors + [-1, 0, 1, 2].sample).clamp(1, 12)
          Hikyaku.publish("/visitors", {visitors: @visitors}, type: "visitors")
        rescue Hikyaku::Error => error
          Rails.logger.warn("the door: #{error.message}")
        end
      end
    end

    private

    # Published under the lock, so that the changes arrive in the order in which they were made.
    def move(id, step)
      book = SHELF.find { |one| one.id == id.to_i } or return
      @lock.synchronize do
        return if (book.stock + step).negative?
        book.stock += step
        @takings -= step * book.price
        Hikyaku.publish("/books/#{book.id}", {id: book.id, stock: book.stock}, type: "stock")
        Hikyaku.publish("/takings", {takings: @takings}, type: "takings", private: true)
      end
    end
  end
end
