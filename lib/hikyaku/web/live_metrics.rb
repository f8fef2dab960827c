# frozen_string_literal: true

require "json"
require_relative "../support/clock"
require_relative "../hub/event"

module Hikyaku
  class Web
    # In developer mode, the figures of the hub, and of a broker in its process, told every second to whoever subscribes to exactly `{hub path}/figures`.
    # They are not updates: nothing of them is kept, and no other matcher selects them.
    class LiveMetrics
      include Support::Clock

      def initialize(hub, broker: -> {})
        @hub = hub
        @broker = broker
        @topic = "#{hub.hub_path}/figures"
        @started = @at = now
        @last = hub.stats
      end

      attr_reader :topic

      # Tells the figures, if anybody listens.
      def push
        figures = measure
        @hub.notify(@topic, Hub::Event.transient(data: JSON.generate(figures.merge(broker: @broker.call).compact))) if @hub.watched?(@topic)
      end

      def measure
        now = self.now
        stats = @hub.stats
        seconds = [now - @at, 0.001].max
        rates = %i[publishes deliveries].to_h { |name| [:"#{name}_per_second", ((stats[name] - @last[name]) / seconds).round(1)] }
        @at = now
        @last = stats
        stats.merge(rates, uptime_seconds: (now - @started).round, memory_bytes: memory)
      end

      private

      # Resident memory, where the system tells it the Linux way.
      def memory
        File.read("/proc/self/statm").split[1].to_i * 4096
      rescue SystemCallError
        0
      end
    end
  end
end
