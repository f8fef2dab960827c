# frozen_string_literal: true

require_relative "errors"

module Hikyaku
  module Log
    class Journal
      # Turns what the system refuses into the end of the journal: after the first failure every call raises it.
      class Guard
        # The Failed that ended the journal, or nil.
        attr_reader :failure

        def initialize(files)
          @files = files
        end

        def check!
          raise @failure if @failure
        end

        # Runs a system call. `what` and `name` say in the error what could not be done with which file.
        def call(what, name)
          yield
        rescue SystemCallError => error
          fail!(Failed.new("cannot #{what} #{File.join(@files.path, name)}: #{error.message}; nothing is kept any more: see to the disk, then start again", error))
        end

        # The file that is written to may have been deleted, or the folder moved.
        def check_segment(segment)
          gone(segment.name, "deleted") unless call("look at", segment.name) { @files.linked?(segment.file) }
        end

        def check_folder
          gone("", "moved, replaced or deleted") unless @files.in_place?
        end

        def fail!(error)
          @failure ||= error
          raise @failure
        end

        # Nothing is called after this.
        def close = @failure ||= Failed.new("the journal in #{@files.path} was closed: open it again")

        private

        def gone(name, what)
          fail!(Failed.new("#{File.join(@files.path, name)} was #{what} while it was in use: what was written there may be gone; " \
            "put back what was there, then start again", Errno::ENOENT.new))
        end
      end
    end
  end
end
