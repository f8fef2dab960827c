# frozen_string_literal: true

require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
      # Whether a token of many topics gets to the hub: servers in front bound how long a header field may be, nginx at 8 KB unless
      # it is told otherwise.
      class Length < Check
        about "long tokens"

        # What a hub takes unless it is told otherwise (max_token_bytes).
        WANTED = 16_384
        STEP = 256
        private_constant :WANTED, :STEP

        private

        def perform
          return skipped("not checked: this hub does not refuse as Hikyaku does, so who answers cannot be told") unless visit.hikyaku?
          return ok("a token of #{Words.bytes(WANTED)} gets to the hub") if arrives?(WANTED)
          longest = STEP * (0...WANTED / STEP).bsearch { |steps| !arrives?(STEP * (steps + 1)) }
          warning("a token of more than #{longest} bytes is refused on the way (#{@answered}): pages that follow many streams have such", :length, bytes: longest)
        end

        # It is no token; the hub says so.
        def arrives?(bytes)
          answer = client.request("POST", headers: {"authorization" => "Bearer #{"x" * bytes}"}, form: [%w[topic urn:hikyaku:doctor]])
          return true if answer.problem?
          @answered = answer.status
          false
        rescue ConnectionFailed
          @answered ||= "the connection was closed"
          false
        end
      end
    end
  end
end
