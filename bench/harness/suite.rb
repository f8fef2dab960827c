# frozen_string_literal: true

module Bench
  # Scenarios that are measured together and make one page.
  Suite = Struct.new(:key, :title, :about, :folder, :rounds, :conclusion, keyword_init: true) do
    # @return [Array<Class>] its scenarios, in the order in which they are told
    def scenarios = Scenario.all.select { |scenario| scenario.suite == self }

    # What its figures say in words.
    #
    # @param results [Hash{Scenario => Results}]
    # @return [String, nil] Markdown; nil when nothing can be said
    def conclude(results) = conclusion && Object.const_get(conclusion).new(results).to_s
  end

  class Suite
    HUB = new(key: "all", title: "What it costs", folder: "", rounds: 5,
      about: "Each server runs alone on one core, the load on another, over loopback; a message has 200 bytes.")
    BROKER = new(key: "broker", title: "What the broker costs", folder: "broker", rounds: 5,
      about: "Each broker runs alone on one core, the load on another; its data is on the disk of the checkout.")
    ACTION_CABLE = new(key: "action_cable", title: "Beside Action Cable", folder: "action_cable", rounds: 3,
      conclusion: "Bench::ActionCableConclusion",
      about: "Each server runs alone on one core, with all its processes, the clients on another; a message has 200 bytes.")
    ALL = [HUB, BROKER, ACTION_CABLE].to_h { |suite| [suite.key, suite] }.freeze
  end
end
