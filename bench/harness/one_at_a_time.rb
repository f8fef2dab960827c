# frozen_string_literal: true

module Bench
  # How a fan-out is measured: one update after the other, each to all subscribers of one topic.
  module OneAtATime
    CPU = %w[delivery cpu_us_each].freeze
    WARMUP_SHARE = 10

    # @param scenario [Class] which is measured so
    def self.settings(scenario)
      scenario.setting :subscribers, [100, 1_000, 10_000], quick: [100, 1_000], about: "numbers of subscribers"
      scenario.setting :deliveries, 200_000, quick: 20_000, about: "deliveries of a run, about"
      scenario.setting :size, 200, about: "bytes of a message"
    end

    # @param cell [Cell]
    # @return [Hash]
    def measure(cell)
      messages = (deliveries / [cell.size, 1].max).clamp(10, 2_000)
      on_stage(cell.entrant) do |stage|
        stage.load(subscribers: cell.size, messages: messages, warmup: messages / WARMUP_SHARE + 1, sync: true, size: size)
      end
    end

    # @param figures [Hash]
    # @return [String]
    def headline(figures) = format("%.2f µs of CPU a delivery", figures.dig(*CPU))
  end
end
