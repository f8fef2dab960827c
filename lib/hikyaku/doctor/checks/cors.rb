# frozen_string_literal: true

require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
      # Whether pages of an origin may read from the hub, with their cookie (Fetch standard, section "CORS protocol").
      class Cors < Check
        about "pages of other origins"

        ALLOW = "access-control-allow-origin"
        # What clients send that takes a preflight.
        WANTED = %w[authorization last-event-id].freeze
        READ = %w[mercure-last-event-id].freeze
        private_constant :ALLOW, :WANTED, :READ

        private

        def perform
          return skipped("not checked: give --origin ORIGIN, whose pages use the hub") unless options.origin
          return ok("#{options.origin} is the hub's own origin") if options.origin == Web::Origins.of(place.to_s)
          preflight = client.request("OPTIONS", headers: {"origin" => options.origin, "access-control-request-method" => "GET", "access-control-request-headers" => WANTED.join(", ")})
          found = allowance(preflight, "a preflight")
          found = asked(preflight) if found.empty?
          found = answer if found.empty?
          found.empty? ? ok("pages of #{options.origin} may read, with their cookie") : found
        end

        def answer
          answer = client.request("GET", headers: {"origin" => options.origin, "accept" => "text/event-stream"})
          [*allowance(answer, "a request"), exposed(answer), varies(answer)].compact
        end

        def allowance(answer, what)
          values = answer.head.values(ALLOW)
          return [failed("#{what} is answered with #{values.size} fields #{ALLOW}: browsers refuse that", :cors_twice)] if values.size > 1
          return [failed("#{what} of #{options.origin} is answered without #{ALLOW} (#{answer.status})", :cors)] if values.empty?
          value = values.first
          return [warning("pages of any origin may read, but without their cookie (#{ALLOW}: *)", :cors)] if value == "*"
          return [failed("#{what} of #{options.origin} is answered for #{Words.quote(value)}", :cors)] unless value == options.origin
          return [] if answer["access-control-allow-credentials"] == "true"
          [warning("pages of #{options.origin} may read, but without their cookie (no Access-Control-Allow-Credentials)", :cors)]
        end

        def asked(preflight)
          return [failed("a preflight is answered #{preflight.status}, not with success", :paths)] unless preflight.status.between?(200, 299)
          allowed = names(preflight["access-control-allow-headers"])
          refused = WANTED - allowed
          return [] if refused.empty? || (allowed.include?("*") && refused == ["last-event-id"])
          [warning("a preflight does not allow the header#{"s" if refused.size > 1} #{Words.list(refused)}", :cors)]
        end

        def exposed(answer)
          hidden = READ - names(answer["access-control-expose-headers"])
          warning("pages may not read #{Words.list(hidden)} of an answer", :cors) if hidden.any?
        end

        # What a cache keeps for one origin is wrong for another.
        def varies(answer)
          warning("the answer depends on Origin and does not say so (Vary): a cache would mix origins up", :headers) unless names(answer["vary"]).intersect?(%w[origin *])
        end

        def names(field) = field.to_s.downcase.split(/\s*,\s*/)
      end
    end
  end
end
