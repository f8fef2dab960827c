# frozen_string_literal: true

require_relative "../../test_helper"
require_relative "../turbo"
require_relative "test_adapter"

module Hikyaku
  module Turbo
    # The assertions of Turbo::Broadcastable::TestHelper, over what was published, with or without Action Cable. With
    # `config.hikyaku.turbo` every ActiveSupport::TestCase has them; elsewhere, `include Hikyaku::Turbo::TestHelper`.
    #
    # From then on Action Cable's own, `assert_broadcasts` and its sisters, see what was published to a stream of Turbo's as well.
    module TestHelper
      # @api private
      def self.included(base)
        super
        Hikyaku::TestHelper.record
        TestAdapter.install
      end

      # Something is broadcast to a stream, by the block or, without one, since the test began.
      #
      # @param stream_name_or_object [String, Object, Array] the stream's name, or what it is named after
      # @param count [Integer, nil] how many elements; nil: at least one
      # @yield
      # @return [void]
      def assert_turbo_stream_broadcasts(stream_name_or_object, count: nil, &block)
        found = capture_turbo_stream_broadcasts(stream_name_or_object, &block)
        name = Turbo.name_of(stream_name_or_object).inspect
        return refute_empty(found, "at least one broadcast on #{name} was expected, but there were none") if count.nil?
        assert_equal count, found.size, "#{count} #{"Turbo Stream broadcast".pluralize(count)} on #{name}"
      end

      # Nothing is broadcast to a stream since the test began, after the block was run.
      #
      # @param stream_name_or_object [String, Object, Array] the stream's name, or what it is named after
      # @yield
      # @return [void]
      def assert_no_turbo_stream_broadcasts(stream_name_or_object, &block)
        block&.call
        found = capture_turbo_stream_broadcasts(stream_name_or_object)
        assert_empty found.map(&:to_html), "no broadcast on #{Turbo.name_of(stream_name_or_object).inspect} was expected"
      end

      # What is broadcast to a stream, by the block or, without one, since the test began.
      #
      # @param stream_name_or_object [String, Object, Array] the stream's name, or what it is named after
      # @yield
      # @return [Array<Nokogiri::XML::Element>] the elements `<turbo-stream>`
      def capture_turbo_stream_broadcasts(stream_name_or_object)
        before = block_given? ? Hikyaku::TestHelper.recorder.updates.size : 0
        yield if block_given?
        topic = Turbo.topic(Turbo.name_of(stream_name_or_object))
        updates = Hikyaku::TestHelper.recorder.updates.drop(before).select { |update| update.topics.include?(topic) }
        updates.flat_map { |update| Nokogiri::HTML5.parse(update.data).at("body").element_children.to_a }
      end
    end
  end
end
