# frozen_string_literal: true

require_relative "../challenge"
require_relative "../check"
require_relative "../diagnosis"

module Hikyaku
  class Doctor
    module Checks
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
