# frozen_string_literal: true

require_relative "../support/clock"
require_relative "advice"
require_relative "connection"
require_relative "finding"

module Hikyaku
  class Doctor
    # One thing that is looked at. A subclass says in `perform` what it found.
    class Check
      include Support::Clock

      class << self
        def id = name[/\w+\z/].downcase

        def about(text = nil) = text ? @about = text : @about
      end

      def initialize(visit)
        @visit = visit
      end

      def call
        found = catch(:found) { perform }
        Array(found).compact
      rescue ConnectionFailed => error
        [failed(error.message, :broken)]
      end

      private

      attr_reader :visit

      def options = visit.options

      def client = visit.client

      def place = visit.place

      def patience = options.patience

      def ok(message, **measured) = finding(:ok, message, nil, measured)

      def warning(message, defects = nil, **measured) = finding(:warn, message, defects, measured)

      # What fails comes with what to change.
      def failed(message, defects, **measured) = finding(:fail, message, defects, measured)

      def skipped(message) = finding(:skip, message, nil, {})

      # Leaves `perform` with what was found.
      def settle(finding) = throw(:found, finding)

      def needs_stream!
        settle(skipped("not checked: #{visit.streamless || "no stream was opened"}")) unless visit.streams?
      end

      def needs_publisher!
        settle(skipped("not checked: #{visit.publishless || "nothing was published"}")) unless visit.publishes?
      end

      # Events that are held back would be taken for events that are lost.
      def needs_promptness!
        settle(skipped("not checked, because events do not come at once: see buffering")) if visit.held?
      end

      def finding(level, message, defects, measured)
        Finding.new(check: self.class.id, level: level, message: message, measured: measured.compact.transform_values { |value| value.is_a?(Float) ? value.round(3) : value },
          advice: Array(defects).flat_map { |defect| Advice.on(defect, visit.front) })
      end

      def seconds(number) = Words.seconds(number)
    end

    # The checks: a class, and a file, each.
    module Checks
    end
  end
end
