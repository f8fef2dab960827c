# frozen_string_literal: true

require_relative "../check"
require_relative "../stream"

module Hikyaku
  class Doctor
    module Checks
      # Whether one hub answers all connections: what is published on one reaches who listens on another.
      class Processes < Check
        about "one hub for all"

        private

        def perform
          needs_stream!
          needs_publisher!
          needs_promptness!
          streams = open_streams
          listening = streams.select(&:stream?)
          return skipped("not checked: of #{options.connections} streams only #{listening.size} were opened") if listening.size < 2
          publications = Array.new(options.connections) { visit.publish }
          Stream.wait_all(listening, options.hold) { listening.all? { |stream| missing(stream, publications).zero? } }
          judge(listening, publications)
        ensure
          streams&.each(&:close)
        end

        def open_streams
          streams = []
          options.connections.times { streams << visit.subscribe }
          Stream.wait_all(streams, options.hold) { streams.all? { |stream| stream.head || stream.ended } }
          streams
        rescue ConnectionFailed
          streams.each(&:close)
          raise
        end

        def missing(stream, publications) = publications.count { |publication| stream.arrival(publication.id).nil? }

        def judge(streams, publications)
          short = streams.count { |stream| missing(stream, publications) > 0 }
          sent = "#{Words.count(publications.size, "update")} on as many connections"
          return ok("#{sent}, and each of #{streams.size} readers got them all") if short.zero?
          failed("#{sent}: #{short} of #{streams.size} readers did not get them all, so several hubs answer, and do not know of each other#{named(publications)}", :processes, readers: streams.size, short: short)
        end

        # Each hub names its memory.
        def named(publications)
          names = publications.filter_map { |publication| publication.answer["hikyaku-idempotency"] }.uniq
          (names.size > 1) ? " (#{names.size} answered)" : ""
        end
      end
    end
  end
end
