# frozen_string_literal: true

require_relative "../credentials"
require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
      # Whether the header Authorization gets to the hub, and its challenge back (RFC 6750, section 3; Mercure draft-08,
      # section "Error Responses"). It takes no key: what is no token is refused in another way than none.
      class Authorization < Check
        about "the header Authorization"

        NONSENSE = {"authorization" => "Bearer hikyaku-doctor"}.freeze
        private_constant :NONSENSE

        private

        def perform
          answer = client.request("POST", headers: NONSENSE, form: [%w[topic urn:hikyaku:doctor]])
          challenge = Challenge.new(answer)
          return failed("POST does not get to the hub: #{answer.status}", :paths) if [404, 405, 501].include?(answer.status)
          return failed("to what is no token it answers #{answer.status}, not 401", Advice.defect_of(answer.status)) unless answer.status == 401
          unchallenged(answer, challenge) || judge(challenge)
        end

        def unchallenged(answer, challenge)
          return failed("something in front of the hub asks for a password (#{challenge.scheme.capitalize})", :authorization) if challenge.scheme && !challenge.bearer?
          return if challenge.bearer?
          lost = answer.detail.to_s.include?("needed") ? [failed("it does not get to the hub, which asks for a token", :authorization)] : []
          [*lost, warning("the refusal comes without WWW-Authenticate, which tells clients where to get a token", :challenge)]
        end

        def judge(challenge)
          return failed("it does not get to the hub, which saw no token", :authorization) unless challenge.error
          return elsewhere(challenge) if challenge.metadata && !own?(challenge.metadata)
          ok("it gets to the hub, and the challenge comes back")
        end

        # The check of the metadata says more when it is about a name.
        def elsewhere(challenge)
          warning("it gets to the hub, but the challenge leads to #{Words.quote(challenge.metadata)}, which is not on #{place.origin}", :identifier)
        end

        def own?(url) = place.unix? || url.downcase.start_with?("#{place.origin.downcase}/")
      end

      # Whether the cookie in which browsers send their token gets to the hub (Mercure draft-08, section "Presenting the
      # Access Token"), and whether a browser would send it at all.
      class Cookie < Check
        about "the cookie"

        SECURE = /\A__(?:Secure|Host)-/i
        private_constant :SECURE

        private

        def perform
          name = visit.metadata && visit.metadata["mercure_cookie"]
          return skipped("not checked: the metadata does not say what it is called") unless name.is_a?(String) && name.match?(/\A[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}\z/)
          [unsent(name), arrives(name)].compact
        end

        def unsent(name)
          return if place.tls? || place.local? || !name.match?(SECURE)
          warning("over plain HTTP no browser keeps or sends #{name}", :secure_cookie)
        end

        # What is no token is refused, if it is seen.
        def arrives(name)
          answer = client.request("POST", headers: {"cookie" => "#{name}=hikyaku-doctor", "origin" => place.origin}, form: [%w[topic urn:hikyaku:doctor]])
          return ok("#{name} gets to the hub") if seen?(answer)
          failed("#{name} does not get to the hub: pages cannot show their token", :cookie)
        end

        # A hub that does not know that the request is its own page's refuses that (400), for which it has to see the cookie.
        def seen?(answer)
          return true if Challenge.new(answer).error
          answer.status == 401 && answer.problem? && answer.detail.include?("not valid")
        end
      end

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

      # Whether the publisher's key, issuer and audience are those of the hub.
      class Publisher < Check
        about "publishing"

        private

        def perform
          return without unless visit.credentials.role?(:publisher)
          token = visit.credentials.token(:publisher, visit.topic, audience: visit.audience)
          answer = attempt(token)
          return refused(answer) unless answer.status == 200
          visit.accept(:publisher, token)
          ok("accepted#{" (Hikyaku's hub)" if answer["hikyaku-idempotency"]}, in #{seconds(answer.head_seconds)}", seconds: answer.head_seconds)
        end

        def without
          visit.publishless = "nobody can publish; give --publisher-key, --dev or --token (in an application config.hikyaku.publisher_key or --token)#{reason}"
          skipped("not checked: #{visit.publishless}")
        end

        def refused(answer)
          visit.publishless = "a publish is refused: see publisher"
          failed(*Diagnosis.new(visit, :publisher) { |other| attempt(other) }.of(answer))
        end

        def reason = visit.credentials.unusable.key?(:publisher) ? " (#{visit.credentials.unusable[:publisher]})" : ""

        def attempt(token)
          client.request("POST", headers: {"authorization" => "Bearer #{token}"}, form: [["topic", visit.topic], %w[data doctor], %w[private on]])
        end
      end

      # Whether a stream can be opened: with the subscriber's key, issuer and audience, or without a token.
      class Subscriber < Check
        about "subscribing"

        private

        def perform
          visit.credentials.role?(:subscriber) ? with_token : without
        end

        def with_token
          token = visit.credentials.token(:subscriber, visit.topic, audience: visit.audience)
          answer = attempt(token)
          visit.accept(:subscriber, token) if answer.nil? || answer.status == 200
          return late unless answer
          return ok("with a token a stream is opened") if answer.status == 200
          visit.streamless = "a subscribe is refused: see subscriber"
          failed(*Diagnosis.new(visit, :subscriber) { |other| attempt(other) || answer }.of(answer))
        end

        def without
          answer = attempt
          visit.open_to_all if answer.nil? || answer.status == 200
          return late unless answer
          return ok("without a token a stream of public updates is opened") if answer.status == 200
          visit.streamless = "readers need a token; give --subscriber-key, --dev or --token (in an application config.hikyaku.subscriber_key or --token)#{reason}"
          return skipped("not checked: #{visit.streamless}") if answer.status == 401 && [nil, "bearer"].include?(Challenge.new(answer).scheme)
          visit.streamless = "a subscribe is refused: see subscriber"
          failed(*Diagnosis.new(visit, :subscriber) { answer }.of(answer))
        end

        def late = ok("nothing refuses; when a stream begins is the next question")

        def reason = visit.credentials.unusable.key?(:subscriber) ? " (#{visit.credentials.unusable[:subscriber]})" : ""

        # The head is enough; nil when it does not come at once.
        def attempt(token = nil)
          stream = client.stream([["match", visit.topic]], headers: token ? {"authorization" => "Bearer #{token}"} : {})
          return unless stream.wait([patience, 2].max) { stream.head } || stream.ended
          raise ConnectionFailed, "#{place}: the connection was closed in place of an answer to a subscribe" unless stream.head
          stream.wait(patience) unless stream.status == 200
          stream
        ensure
          stream&.close
        end
      end
    end
  end
end
