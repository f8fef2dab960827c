# frozen_string_literal: true

module Hikyaku
  module Codec
    module Rack
      class Explorer
        # Who may look: a browser or a program on this machine, that came by a name of this machine, from the page itself or from nowhere.
        #
        # What a proxy passes on comes from elsewhere, and a site whose name was pointed at this machine (DNS rebinding) is known by the name. A proxy that adds
        # no field, as nginx does where it is told nothing, mostly asks with HTTP/1.0, which no browser does.
        module Caller
          LOOPBACK = /\A(?:::ffff:)?127(?:\.\d{1,3}){3}\z|\A::1\z/i
          HOST = /\A(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?\z/i
          PASSED_ON = %w[HTTP_X_FORWARDED_FOR HTTP_X_FORWARDED_HOST HTTP_X_REAL_IP HTTP_FORWARDED HTTP_VIA].freeze
          OLD = %r{\AHTTP/1\.0\z}i
          OWN = [nil, "none", "same-origin"].freeze
          private_constant :LOOPBACK, :HOST, :PASSED_ON, :OLD, :OWN

          def self.refusal(env)
            return "this page is for browsers on the machine of the application" unless LOOPBACK.match?(env["REMOTE_ADDR"].to_s)
            return "this page is not for what a proxy passes on: open it at the address of the application itself" if passed_on?(env)
            return "this page is opened at localhost, or at an address of the loopback" unless HOST.match?(env["HTTP_HOST"].to_s)
            "this page is opened by itself, and not by another site" unless OWN.include?(env["HTTP_SEC_FETCH_SITE"])
          end

          def self.passed_on?(env) = PASSED_ON.any? { |name| env.key?(name) } || OLD.match?(env["SERVER_PROTOCOL"].to_s)
          private_class_method :passed_on?
        end
        private_constant :Caller
      end
    end
  end
end
