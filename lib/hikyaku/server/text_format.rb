# frozen_string_literal: true

module Hikyaku
  class Server
    # Lines of figures in the text format of Prometheus. Whoever includes it has `full_name`, what a metric is called outside.
    module TextFormat
      private

      def table(rows, figures)
        rows.flat_map { |name, type, help, key| figures.key?(key) ? metric(name, type, help, nil => figures[key]) : [] }
      end

      def metric(name, type, help, values)
        return [] if values.empty?
        name = full_name(name)
        heading(name, type, help) + values.map { |labels, value| "#{name}#{"{#{labels}}" if labels} #{value}" }
      end

      # A summary without quantiles.
      def summary(name, help, sum, count)
        name = full_name(name)
        heading(name, "summary", help) + ["#{name}_sum #{sum}", "#{name}_count #{count}"]
      end

      def heading(name, type, help) = ["# HELP #{name} #{help}", "# TYPE #{name} #{type}"]
    end
  end
end
