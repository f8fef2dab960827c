# frozen_string_literal: true

require_relative "stall_detector"
require_relative "pipeline"

module Hikyaku
  module HTTP
    class Client
      # What the end of a connection teaches of its server.
      module FailureClassifier
        # Servers close what was idle for longer, and mean nothing by it, seconds.
        STALE = 1.0
        # An answer of such a status that is the last of its connection tells of an error, and not of how many the server gives.
        ERRORS = (400..)
        private_constant :STALE, :ERRORS

        module_function

        def draw(verdict, connection, cause, unanswered, wall)
          case cause
          when :corrupt, :doubtful then verdict.ban!(cause, wall)
          when :balked
            verdict.failed(:balked, wall)
            verdict.limit.silent_after(connection.pipeline.answered) if unanswered_probe?(connection)
          when :last then last(verdict, connection, unanswered)
          when :closed, :reset then closed(verdict, connection, cause, unanswered, wall)
          end
        end

        # Nothing came for long.
        def draw_from_silence(verdict, connection, what, wall)
          verdict.limit.silent_after(connection.pipeline.answered) if unanswered_probe?(connection)
          verdict.failed(what, wall)
        end

        # What did not come, or was refused, comes no sooner, or is refused as well, by itself: then it was not the pipeline that was at fault.
        def forgive(verdict, exchange, response, wall)
          what = exchange.suspected or return
          return unless (what == :balked) ? Pipeline::BALKS.include?(response.status) : StallDetector.late?(exchange)
          verdict.forgive(what, wall)
          exchange.suspected = nil
        end

        def unanswered_probe?(connection) = connection.probing && !connection.pipeline.midway?
        private_class_method :unanswered_probe?

        def last(verdict, connection, unanswered)
          verdict.closed_after(connection.pipeline.answered) if unanswered.any? && !ERRORS.cover?(connection.pipeline.last_status)
        end
        private_class_method :last

        def closed(verdict, connection, cause, unanswered, wall)
          return if unanswered.empty?
          verdict.closed_after(connection.pipeline.answered, told: false) if connection.rested < STALE
          verdict.failed(connection.probing ? :discarded : cause, wall) if unanswered.size > 1
        end
        private_class_method :closed
      end
    end
  end
end
