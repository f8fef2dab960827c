# frozen_string_literal: true

require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
      # Whether something compresses streams, for clients that say, as browsers do, that they understand it.
      class Compression < Check
        about "compression"

        CODINGS = "gzip, deflate, br, zstd"
        private_constant :CODINGS

        private

        def perform
          needs_stream!
          stream = visit.subscribe(headers: {"accept-encoding" => CODINGS})
          return unseen unless stream.wait(options.hold) { stream.head }
          return ok("streams are not compressed") unless stream.coded?
          judge(stream, Words.quote(stream["content-encoding"]))
        ensure
          stream&.close
        end

        def unseen = failed("for a client that offers #{CODINGS}, no head of a stream comes within #{seconds(options.hold)}", :compression)

        def judge(stream, coding)
          against = stream["cache-control"].to_s.include?("no-transform") ? ", against its Cache-Control" : ""
          return warning("streams are compressed (#{coding})#{against}", :compression, coding: coding) unless visit.publishes?
          return warning("streams are compressed (#{coding})#{against}; events come at once nevertheless", :compression, coding: coding) if passes?(stream)
          failed("streams are compressed (#{coding})#{against}, and events are held back by it", :compression, coding: coding)
        end

        def passes?(stream)
          stream.wait(patience) { stream.size > 0 }
          size = stream.size
          visit.publish
          stream.wait(patience) { stream.size > size }
        end
      end
    end
  end
end
