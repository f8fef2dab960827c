# frozen_string_literal: true

require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
      # Whether a stream begins when it is asked for, or only with its first event: until then a client thinks that it is
      # not connected.
      class Flush < Check
        about "a stream begins at once"

        private

        def perform
          needs_stream!
          stream = visit.subscribe
          stream.wait(patience) { stream.head }
          return ok("its head is there in #{seconds(stream.head_seconds)}", seconds: stream.head_seconds) if stream.head
          visit.publishes? ? with_event(stream) : with_comment(stream)
        ensure
          stream&.close
        end

        def with_event(stream)
          visit.publish
          stream.wait(patience) { stream.head }
          return failed("the head of a stream comes only with the first event", :flush) if stream.head
          with_comment(stream)
        end

        def with_comment(stream)
          visit.progress("flush: waiting for the head of a stream", options.hold)
          stream.wait(options.hold) { stream.head }
          return failed("the head of a stream does not come within #{seconds(options.hold)}", :flush) unless stream.head
          failed("the head of a stream comes after #{seconds(stream.head_seconds)}#{", with the hub's first comment" if stream.comments.any?}", :flush, seconds: stream.head_seconds)
        end
      end
    end
  end
end
