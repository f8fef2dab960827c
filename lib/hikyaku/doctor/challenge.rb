# frozen_string_literal: true

module Hikyaku
  class Doctor
    # The WWW-Authenticate field of a refusal (RFC 6750, section 3; RFC 9728, section 5.1).
    class Challenge
      PARAMETER = /([a-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))/i
      private_constant :PARAMETER

      attr_reader :scheme

      def initialize(answer)
        field = answer["www-authenticate"].to_s
        @scheme = field[/\A\s*([a-z0-9-]+)/i, 1]&.downcase
        @parameters = field.scan(PARAMETER).to_h { |name, quoted, bare| [name.downcase, quoted || bare] }
      end

      def bearer? = @scheme == "bearer"

      def error = @parameters["error"]

      def metadata = @parameters["resource_metadata"]
    end
  end
end
