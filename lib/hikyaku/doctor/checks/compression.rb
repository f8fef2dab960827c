# frozen_string_literal: true

require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
      # Whether something between compresses streams, for clients that say that they understand it. They like it less than what is
      # not compressed: so the hub, which weighs what they like, does not do it.
      class Compression < Check
        about "compression"

        CODINGS = "gzip, deflate, br, zstd"
        ASKED = "identity, #{CODINGS.split(", ").map { |coding| "#{coding};q=0.9" }.join(", ")}"
        private_constant :CODINGS, :ASKED

        private

        def perform
          needs_stream!
          stream = visit.subscribe(headers: {"accept-encoding" => ASKED})
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
