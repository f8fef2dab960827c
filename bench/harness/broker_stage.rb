# frozen_string_literal: true

require_relative "stage"

module Bench
  # A broker that runs, and the loads that are put on it one after another, each with queues of its own.
  class BrokerStage < Stage
    # What a broker loads and allocates with its first messages is not what is measured.
    def wake = load(messages: 50, senders: 2, receivers: 2, settle: 20)

    # @param options [Hash] see {Load.run}; `prefix:` names the queues of an earlier load
    # @return [Hash] figures
    def load(prefix: next_prefix, **options, &on_phase)
      super(program: "queue_load", prefix: prefix, **options, &on_phase)
    end

    private

    def next_prefix = "bench#{@loads = @loads.to_i + 1}"
  end
end
