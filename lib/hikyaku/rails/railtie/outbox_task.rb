# frozen_string_literal: true

require_relative "../outbox"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # What `bin/rails hikyaku:outbox` and its sisters do.
    module OutboxTask
      SIGNALS = %w[INT TERM].freeze
      # Of set aside rows, which may be many.
      SHOWN = 50
      private_constant :SIGNALS, :SHOWN

      module_function

      # Takes rows to the hub until the process is told to end.
      def run
        courier = outbox.courier
        # A handler may not wait for a lock.
        SIGNALS.each { |name| trap(name) { Thread.new { courier.stop(seconds: 0) } } }
        courier.run
      end

      def show(output = $stdout)
        stats = outbox.stats
        oldest = stats.oldest_seconds
        output.puts "#{stats.waiting} updates wait#{" (the oldest for #{oldest.round} s)" if oldest}, #{stats.set_aside} are set aside"
        outbox.set_aside(limit: SHOWN).each { |row| output.puts "  #{row.id}  #{row.at.utc.iso8601}  #{row.topics.join(", ")}  #{row.error}" }
      end

      def retry_set_aside(output = $stdout)
        output.puts "#{outbox.retry_set_aside} updates will be tried again"
      end

      def outbox = Outbox.current || raise(ConfigError, "there is no outbox: set config.hikyaku.outbox = true")
      private_class_method :outbox
    end
  end
end
