# frozen_string_literal: true

module Hikyaku
  class Server
    # Lines of figures in the text format of Prometheus. Whoever includes it has `full_name`, what a metric is called outside.
    #
    # @api private
    module TextFormat
      private

      # @param rows [Array<Array(String, String, String, Symbol)>] name, type, what it says, and which figure it is
      # @param figures [Hash{Symbol => Numeric}] only what is there is shown
      # @return [Array<String>]
      def table(rows, figures)
        rows.flat_map { |name, type, help, key| figures.key?(key) ? metric(name, type, help, nil => figures[key]) : [] }
      end

      # @param values [Hash{String, nil => Numeric}] by what stands between the braces; nil: there are none
      # @return [Array<String>]
      def metric(name, type, help, values)
        return [] if values.empty?
        name = full_name(name)
        heading(name, type, help) + values.map { |labels, value| "#{name}#{"{#{labels}}" if labels} #{value}" }
      end

      # A summary without quantiles.
      #
      # @param sum [Numeric] of what was observed
      # @param count [Integer] how often
      # @return [Array<String>]
      def summary(name, help, sum, count)
        name = full_name(name)
        heading(name, "summary", help) + ["#{name}_sum #{sum}", "#{name}_count #{count}"]
      end

      def heading(name, type, help) = ["# HELP #{name} #{help}", "# TYPE #{name} #{type}"]
    end
  end
end
