# frozen_string_literal: true

require "test_helper"
require "support/rails_server"
require "support/snippets"

# What docs/guides/outbox.md says, done in an application: its commands are run there, and its lines are what an application's test runs.
class OutboxGuideTest < Minitest::Test
  SNIPPETS = Snippets.of("docs/guides/outbox.md").freeze
  COMMANDS = SNIPPETS.select { |snippet| snippet.language == "sh" }.flat_map { |snippet| snippet.code.lines }.map { |line| line.sub(/#.*/, "").split }.freeze
  TRANSACTION, OPTIONS, CALLBACK = SNIPPETS.select { |snippet| snippet.language == "ruby" }.map(&:code).freeze
  BOOKS = <<~RUBY
    class CreateBooks < ActiveRecord::Migration[7.2]
      def change = create_table(:books) { |table| table.integer :stock }
    end
  RUBY
  PARTIAL = %(<p id="<%= dom_id stock %>"><%= stock.price %></p>\n)
  TEST = <<~RUBY
    require "test_helper"

    class GuideTest < ActiveSupport::TestCase
      class Later < Stock
        self.table_name = "stocks"
        def self.model_name = Stock.model_name
        reset_callbacks :update
        after_update_commit -> { broadcast_replace_to "stocks" }
      end

      setup do
        @book = Book.create!(stock: 3)
        @stock = Stock.create!(symbol: "SANJO", name: "Sanjo Bridge", price: 100, opening: 100)
      end

      def sell(book)
        #{TRANSACTION.gsub("\n", "\n    ")}
      end

      test "a publish goes with its transaction, and one past the outbox goes whatever becomes of it" do
        assert_equal %W[/typing /books/\#{@book.id}], capture_published { sell(@book) }.map { |update| update.topics.first }
        assert_equal 2, @book.reload.stock
        updates = capture_published { Book.transaction { sell(@book) and raise ActiveRecord::Rollback } }
        assert_equal %w[/typing], updates.map { |update| update.topics.first }
      end

      test "each of the options is one" do
        lines = #{OPTIONS.lines.inspect}
        assert_equal 2, lines.size
        assert_equal [{"courier" => false}, {"record" => "AnimalsRecord"}], lines.map { |line|
          config = Struct.new(:hikyaku).new(ActiveSupport::OrderedOptions.new)
          binding.eval(line)
          Hikyaku::Railtie::OutboxGlue.send(:options_of, config.hikyaku.outbox)
        }
      end

      test "a callback before the commit stores what it broadcasts with the change, and one after it does not" do
        updates = capture_published do
          Stock.transaction do
            @stock.update!(price: 101)
            assert_equal 1, waiting
            @stock.update!(price: 102)
            assert_equal 2, waiting
          end
        end
        assert_equal [101, 102], updates.map { |update| update.data[/\\b10[12]\\b/].to_i }
        assert_empty capture_published { Stock.transaction { @stock.update!(price: 103) and raise ActiveRecord::Rollback } }
        later = Later.find(@stock.id)
        updates = capture_published { Stock.transaction { later.update!(price: 104).then { assert_equal 0, waiting } } }
        assert_equal 1, updates.size
      end

      def waiting = Hikyaku::Outbox.current.stats.waiting
    end
  RUBY

  test "the commands make an outbox, and what is published in transactions goes with them" do
    assert_equal 2, COMMANDS.size
    folder = RailsServer::Folder.new({"db/migrate/20250101000001_create_books.rb" => BOOKS, "app/models/book.rb" => "class Book < ApplicationRecord\nend\n",
      "app/models/stock.rb" => CALLBACK, "app/views/stocks/_stock.html.erb" => PARTIAL, "test/models/guide_test.rb" => TEST}, example: File.join(RailsServer::ROOT, "examples/rails_live"))
    COMMANDS.each { |command| run_in(folder, *command) }
    output = run_in(folder, "bin/rails", "db:test:prepare", "test", RAILS_ENV: "test", TEST: "test/models/guide_test.rb", MT_NO_PLUGINS: nil)
    assert_match(/^3 runs, \d+ assertions, 0 failures, 0 errors, 0 skips$/, output)
  ensure
    folder&.remove
  end

  private

  def run_in(folder, *command, **env)
    output, status = folder.run(*command, **env)
    assert status.success?, output
    output
  end
end
