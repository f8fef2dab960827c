# frozen_string_literal: true

require "rack/utils"
require "securerandom"

module Hikyaku
  module Turbo
    class Door
      # By what a visitor without a session is the same one when the token is renewed: a cookie of the door's own, since a stream
      # that lasts takes no token of another subject (docs/live-streams.md).
      #
      #     no cookie ──► a new number ──► token of anonymous:NUMBER, and the cookie: NUMBER, signed, as long as the token
      #                                          ▲                                 │
      #                                          └──────── its number, verified ◄──┘ with each request to the door
      #
      # Signed by the application, for this alone and with its end: nobody chooses whose tokens they get, and who knows a subject,
      # which others may see (Presence), has no cookie with it. It knows nobody for longer than a token lasts.
      class Keepsake
        NAME = "hikyaku_visitor"
        NUMBER = /\A[A-Za-z0-9_-]{22}\z/
        # Seconds beyond the token's end: a request is on its way for a while, and clocks of several servers differ.
        LEEWAY = 60
        private_constant :NUMBER, :LEEWAY

        def initialize(request)
          @request = request
        end

        def subject = "anonymous:#{number}"

        def cookie(seconds)
          lasts = seconds + LEEWAY
          Rack::Utils.set_cookie_header(NAME, value: verifier.generate(number, purpose: NAME, expires_in: lasts), max_age: lasts,
            path: Railtie.mount.settings.streams_path, httponly: true, same_site: :strict, secure: @request.ssl?)
        end

        private

        def number = @number ||= kept || SecureRandom.urlsafe_base64(16)

        def kept
          number = verifier.verified(@request.cookies[NAME], purpose: NAME)
          number if number.is_a?(String) && NUMBER.match?(number)
        end

        def verifier = ::Rails.application.message_verifier(NAME)
      end
    end
  end
end
