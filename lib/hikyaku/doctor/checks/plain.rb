# frozen_string_literal: true

require_relative "../check"
require_relative "../client"

module Hikyaku
  class Doctor
    module Checks
      # Whether tokens and cookies can travel readable: what becomes of plain HTTP.
      class Plain < Check
        about "plain HTTP"

        # After these a client repeats a POST as one.
        KEEP_METHOD = [307, 308].freeze
        private_constant :KEEP_METHOD

        private

        def perform
          return unencrypted unless place.tls?
          port = options.http_port || (80 if place.port == 443)
          return skipped("not checked: give --http-port PORT, where plain HTTP is answered") unless port
          judge(Client.new(place.plain(port)).request("POST", form: []), port)
        rescue ConnectionFailed
          ok("port #{port} answers no plain HTTP")
        end

        def unencrypted
          return [] if place.local?
          warning("tokens and cookies travel readable", :tls)
        end

        def judge(answer, port)
          location = answer["location"].to_s
          return failed("port #{port} does not send clients to https: it answers #{answer.status}", :plain) unless answer.status.between?(300, 399) && location.match?(%r{\Ahttps://}i)
          lost = KEEP_METHOD.include?(answer.status) ? "" : ", after which many repeat a POST as a GET: let publishers use the https URL"
          ok("port #{port} sends clients to https (#{answer.status})#{lost}")
        end
      end
    end
  end
end
