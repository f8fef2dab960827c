# frozen_string_literal: true

module Hikyaku
  class Hub
    class Storage
      # The error messages for a history that is not complete. Both engines log the same.
      module LossReport
        # Bytes that an update takes in the journal at least: a MARK, and a record with one topic.
        MIN_UPDATE_BYTES = 112
        COPIED = "how many were published after the copy was made is not known"
        private_constant :MIN_UPDATE_BYTES, :COPIED

        module_function

        def tail(folder, level:, newest:, known:, space:, copied:)
          since = newest ? "the newest update that is there was published at #{time(newest)}" : "no update is there"
          state = copied ? "is a copy, or was copied over" : "was not closed in order, and its end may be lost, as after a loss of power"
          "the history in #{folder} #{state}: #{since}; #{copied ? COPIED : missing(level, known, space)}. " \
            "Ids go on with a new key, and readers are told of a gap"
        end

        def hole(folder, segment, from, to, count)
          "#{segment} in #{folder} does not verify from offset #{from} to #{to}, as after a loss of power or damage: #{count} updates are missing there. " \
            "What is whole behind them is kept#{", and readers are told of a gap" if count > 0}"
        end

        def missing(level, known, space)
          return "#{known} updates that were published behind it are missing" if known
          return "no acknowledged update is missing, at level synced" if level == :synced
          "behind it up to #{space / MIN_UPDATE_BYTES} acknowledged updates may be missing, at level written"
        end

        def time(milliseconds) = Time.at(0, milliseconds, :millisecond).utc.strftime("%FT%T.%LZ")

        private_class_method :missing, :time
      end
    end
  end
end
