# frozen_string_literal: true

require_relative "../challenge"
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
    end
  end
end
