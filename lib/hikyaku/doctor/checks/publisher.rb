# frozen_string_literal: true

require_relative "../check"
require_relative "../diagnosis"

module Hikyaku
  class Doctor
    module Checks
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
    end
  end
end
