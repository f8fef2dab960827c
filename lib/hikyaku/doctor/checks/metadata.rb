# frozen_string_literal: true

require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
      # What clients must know to get a token, at a path that follows from the hub's URL (RFC 9728; Mercure draft-08,
      # section "Protected Resource Metadata").
      class Metadata < Check
        about "metadata (RFC 9728)"

        WELL_KNOWN = "/.well-known/oauth-protected-resource"
        PRIVATE = /\A(?:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[?::1|[^.]+\z)/i
        private_constant :WELL_KNOWN, :PRIVATE

        private

        def perform
          answer = client.request("GET", target)
          document = answer.json if answer.status == 200 && answer.type == "application/json"
          return missing(answer) unless document
          visit.metadata = document
          judge(document["resource"])
        end

        # RFC 9728, section 3: between host and path; a path that is only a slash goes.
        def target = "#{WELL_KNOWN}#{place.path unless place.path == "/"}"

        def missing(answer)
          what = (answer.status == 200) ? "a #{answer.type || "page"} is there" : "#{answer.status} is answered"
          whose = (visit.hikyaku? && answer.problem?) ? ": the hub has another URL in mind, or another path" : ""
          warning("not at #{target}: #{what}#{whose}", :metadata)
        end

        def judge(resource)
          return warning("the document at #{target} names no resource", :metadata) unless resource.is_a?(String)
          return ok("at #{target}") if place.same?(resource)
          # A socket has no URL to compare with.
          return ok("at #{target}, of #{Words.quote(resource)}") if place.unix?
          message = "the hub calls itself #{Words.quote(resource)}, not #{place}: clients that compare (RFC 9728) give up, and tokens must be made for that name"
          inner?(resource) ? failed(message, :identifier) : warning(message, :identifier)
        end

        # An address of the inside, told to everybody.
        def inner?(resource)
          host = resource[%r{\Ahttps?://([^/?#]+)}i, 1] or return false
          !place.local? && host.match?(PRIVATE)
        end
      end
    end
  end
end
