# frozen_string_literal: true

require_relative "../hikyaku"

module Hikyaku
  # Assertions about what was published, for Minitest. From when it is loaded in Rails' test environment, or included
  # anywhere else, updates are recorded and need no hub; a hub that this process holds still gets them.
  #
  #     class BookTest < ActiveSupport::TestCase      # elsewhere: include Hikyaku::TestHelper
  #       test "a sale is announced" do
  #         assert_published("https://example.com/books/1") { book.sell }
  #       end
  #     end
  module TestHelper
    # In the place of a hub: keeps the updates, and gives them to the hub of this process if there is one.
    class Recorder
      def initialize
        @lock = Mutex.new
        @updates = []
      end

      def publish(update, **options)
        id = Hikyaku.hub&.publish(update, **options)
        @lock.synchronize do
          @updates << update
          id || update.id || "#recorded-#{@updates.size}"
        end
      end

      def disconnect(**options) = Hikyaku.hub ? Hikyaku.hub.disconnect(**options) : 0

      def updates = @lock.synchronize { @updates.dup }

      def clear = @lock.synchronize { @updates.clear }
    end

    # Put before Hikyaku's own methods.
    module Recording
      private

      def publisher = TestHelper.publisher
    end
    private_constant :Recording

    @recorder = Recorder.new

    class << self
      # Begins to record. Harmless when repeated.
      #
      # @return [void]
      def record
        @publisher ||= Publisher.new(@recorder)
        Hikyaku.singleton_class.prepend(Recording)
      end

      # @return [Publisher] that records
      attr_reader :publisher
      # @return [Recorder]
      attr_reader :recorder

      # @api private
      def included(base)
        super
        record
      end
    end

    # Each test begins with nothing published.
    #
    # @api private
    # @return [void]
    def before_setup
      TestHelper.recorder.clear
      super
    end

    # So many updates are published to a topic, by the block or, without one, since the test began.
    #
    # @param topic [String, Regexp] one of the update's topics
    # @param count [Integer]
    # @return [Array<Hub::Update>] those
    def assert_published(topic, count: 1, &block)
      updates, all = published(topic, &block)
      assert_equal count, updates.size, "#{count} updates of #{topic.inspect} were expected; #{TestHelper.send(:listing, all)}"
      updates
    end

    # Nothing is published to a topic, or nothing at all, by the block or, without one, since the test began.
    #
    # @param topic [String, Regexp, nil]
    # @return [void]
    def assert_no_published(topic = nil, &block)
      updates, = published(topic, &block)
      assert_empty updates.map(&:topics), "no update#{" of #{topic.inspect}" if topic} was expected"
    end

    # What the block publishes.
    #
    # @param topic [String, Regexp, nil] only of this topic
    # @yield
    # @return [Array<Hub::Update>]
    def capture_published(topic = nil, &block) = published(topic, &block).first

    class << self
      private

      def listing(updates)
        return "nothing was published" if updates.empty?
        "published were #{updates.map { |update| update.topics.join(", ") }.join("; ")}"
      end
    end

    private

    def published(topic)
      before = block_given? ? TestHelper.recorder.updates.size : 0
      yield if block_given?
      all = TestHelper.recorder.updates.drop(before)
      [topic ? all.select { |update| update.topics.any? { |one| topic === one } } : all, all]
    end
  end
end
