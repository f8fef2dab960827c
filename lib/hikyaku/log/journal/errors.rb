# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  module Log
    class Journal
      # Why the engine in C does not open a journal, where that has an error of its own.
      #
      # @param folder [String]
      # @param status [String] of the engine in C
      # @param trouble [Array] see Corrupt.of
      # @return [Locked, Corrupt, nil] nil: the system refuses
      def self.refusal(folder, status, trouble)
        case status
        when "HK_TOO_MANY" then Locked.new("#{folder} is in use: #{trouble.first}")
        when "HK_INVALID" then Corrupt.of(folder, trouble)
        end
      end

      # What was synced is not there, or is not what was written. The message names the file and the offset.
      class Corrupt < StandardError
        include Error

        # @return [String] name of the file
        attr_reader :segment
        # @return [Integer] where in it, in bytes
        attr_reader :offset

        # What the engine in C says of a journal, in the words of this one.
        #
        # @param folder [String]
        # @param trouble [Array] a sentence, name of the file, where in it
        # @return [Corrupt]
        def self.of(folder, trouble)
          sentence, segment, offset, = trouble
          new(folder, segment, offset, sentence.delete_prefix("#{segment} is damaged at offset ").sub(/\A[\d,]+: /, "").sub(/; hikyaku log check .*\z/, ""))
        end

        # @param folder [String]
        # @param segment [String] name of the file
        # @param offset [Integer] bytes
        # @param reason [String] what is wrong there
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

        # @return [SystemCallError, nil] what the system said
        attr_reader :error

        # @param message [String]
        # @param error [SystemCallError, nil]
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

        # @param folder [String]
        # @param error [SystemCallError, nil] why another could not be made
        # @param bytes [Integer, nil] of a segment
        # @return [Full]
        def self.none(folder, error, bytes = nil)
          new("there is no room for another segment#{" of #{bytes} bytes" if bytes} in #{folder} (#{error&.message}): make room there, or allow more open files")
        end
      end
    end
  end
end
