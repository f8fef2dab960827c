# frozen_string_literal: true

require_relative "../../config/settings"
require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
      # What should not be there for everybody: developer mode, the secret of development images, figures.
      class Exposure < Check
        about "what is open to everybody"

        private

        def perform
          found = [developer, known_secret, metrics].compact
          return ok("neither developer mode nor figures") if found.empty?
          return found unless place.local?
          ok("on this machine only: #{found.map(&:message).join("; ")}")
        end

        def developer
          answer = client.request("GET", "#{place.path.chomp("/")}/ui/")
          failed("the developer page is there (developer mode): it lets everybody in, and makes tokens", :development) if answer.status == 200 && answer.type == "text/html" && answer.body.include?("Hikyaku")
        end

        # Whoever reads it here could sign tokens that this hub believes. A token that is refused is 401, whoever is let in.
        def known_secret
          token = visit.credentials.trial(Config::Settings::DEVELOPMENT_SECRET, issuer: "hikyaku", audience: visit.resource || place.to_s)
          stream = client.stream([%w[match urn:hikyaku:doctor]], headers: {"authorization" => "Bearer #{token}"})
          stream.wait(options.hold) { stream.head }
          failed("the hub believes tokens that are signed with the secret of development images, which everybody knows", :development) if stream.stream? && refuses_others?
        ensure
          stream&.close
        end

        # Else it has not looked at the token at all.
        def refuses_others?
          token = visit.credentials.trial("not the secret of anybody, only of a try", issuer: "hikyaku", audience: visit.resource || place.to_s)
          client.request("GET", "#{place.target}#{place.target.include?("?") ? "&" : "?"}match=urn:hikyaku:doctor", headers: {"authorization" => "Bearer #{token}"}).status == 401
        end

        def metrics
          answer = client.request("GET", "/metrics")
          return unless answer.status == 200 && answer.body.include?("hikyaku_")
          # Only the loop of the engine in C turns.
          engine = answer.body.include?("hikyaku_loop_turns_total") ? "C" : "Ruby"
          warning("/metrics shows the hub's figures to everybody (engine in #{engine})", :metrics, engine: engine)
        end
      end
    end
  end
end
