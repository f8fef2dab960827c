# frozen_string_literal: true

require_relative "../turbo"
require_relative "signed_stream"

module Hikyaku
  module Turbo
    # What Turbo::SystemTestHelper does in system tests, with the element that turbo_stream_from makes here: `visit` waits until the
    # page follows its streams, and `assert_turbo_cable_stream_source` finds them. All of that goes through one selector of
    # Capybara's, which is told of the other element.
    module SystemTestHelper
      ELEMENTS = %w[hikyaku-stream-source turbo-cable-stream-source].freeze
      STATES = %w[connected caught-up].freeze
      HELPER = "turbo/system_test_helper"

      module_function

      # Without effect where turbo-rails has no such helper yet.
      def install
        begin
          require HELPER
        rescue LoadError => error
          raise unless error.path == HELPER
          return
        end
        Capybara.modify_selector(:turbo_cable_stream_source) do
          xpath { |_locator| XPath.descendant.where(XPath.local_name.one_of(*ELEMENTS)) }

          locator_filter { |node, locator| SystemTestHelper.carries?(node["signed-stream-name"], locator) }

          expression_filter(:connected) do |xpath, value|
            live = XPath.attr(:connected) | XPath.attr(:state).one_of(*STATES)
            xpath.where(value ? live : !live)
          end

          # In place of turbo-rails' own: an element without that attribute follows what Turbo::StreamsChannel does.
          expression_filter(:channel) { |xpath, _value| xpath }
          node_filter(:channel) { |node, value| SystemTestHelper.asks?(node["channel"] || "Turbo::StreamsChannel", value) }

          # In place of turbo-rails' own, which compares with a name that it signs itself.
          expression_filter(:signed_stream_name) { |xpath, _value| xpath }
          node_filter(:signed_stream_name) { |node, value| SystemTestHelper.carries?(node["signed-stream-name"], value) }
        end
      end

      def asks?(class_name, wanted)
        case wanted
        when nil, true then true
        when Regexp then wanted.match?(class_name)
        else class_name == (wanted.try(:name) || wanted).to_s
        end
      end

      # Two signed names of one stream need not be the same, as they expire at different times.
      def carries?(signed, wanted)
        case wanted
        when nil then true
        when true, false then !signed.nil? == wanted
        when Regexp then wanted.match?(signed.to_s)
        else !signed.nil? && (signed == wanted || SignedStream.open(signed).first&.name == Turbo.name_of(wanted))
        end
      end
    end
  end
end
