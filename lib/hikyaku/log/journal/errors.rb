# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  module Log
    class Journal
      # Why the engine in C does not open a journal, where that has an error of its own.
      def self.refusal(folder, status, trouble)
        case status
        when "HK_TOO_MANY" then Locked.new("#{folder} is in use: #{trouble.first}")
        when "HK_INVALID" then Corrupt.of(folder, trouble)
        end
      end

      # What was synced is not there, or is not what was written. The message names the file and the offset.
      class Corrupt < StandardError
        include Error

        attr_reader :segment
        attr_reader :offset

        # What the engine in C says of a journal, in the words of this one.
        def self.of(folder, trouble)
          sentence, segment, offset, = trouble
          new(folder, segment, offset, sentence.delete_prefix("#{segment} is damaged at offset ").sub(/\A[\d,]+: /, "").sub(/; hikyaku log check .*\z/, ""))
        end

        def initialize(folder, segment, offset, reason)
          @segment = segment
          @offset = offset
          super("#{segment} is damaged at offset #{offset}: #{reason}; hikyaku log check #{folder} says more, and " \
            "hikyaku log salvage #{folder} keeps what is whole")
        end
      end

      # Somebody wants the process to end, and does not wait until all was read.
      class Interrupted < StandardError
        include Error
      end

      # Another process has the journal open, or this one has.
      class Locked < StandardError
        include Error
      end

      # A system call failed where that is the end of the journal's use by this process: the disk may not hold what memory does.
      class Failed < StandardError
        include Error

        attr_reader :error

        def initialize(message, error = nil)
          @error = error
          super(message)
        end
      end

      # There was no descriptor to read a segment with: that passes.
      class Unread < StandardError
        include Error
      end

      # There is no room for another segment: only what frees something is taken.
      class Full < StandardError
        include Error

        def self.none(folder, error, bytes = nil)
          new("there is no room for another segment#{" of #{bytes} bytes" if bytes} in #{folder} (#{error&.message}): make room there, or allow more open files")
        end
      end
    end
  end
end
