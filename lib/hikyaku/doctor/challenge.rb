# frozen_string_literal: true

module Hikyaku
  class Doctor
    # The WWW-Authenticate field of a refusal (RFC 6750, section 3; RFC 9728, section 5.1).
    #
    # @api private
    class Challenge
      PARAMETER = /([a-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))/i
      private_constant :PARAMETER

      # @return [String, nil] in lower case; nil when there is no challenge
      attr_reader :scheme

      # @param answer [Exchange]
      def initialize(answer)
        field = answer["www-authenticate"].to_s
        @scheme = field[/\A\s*([a-z0-9-]+)/i, 1]&.downcase
        @parameters = field.scan(PARAMETER).to_h { |name, quoted, bare| [name.downcase, quoted || bare] }
      end

      # @return [Boolean]
      def bearer? = @scheme == "bearer"

      # @return [String, nil] what is wrong with the token; nil when the hub saw none
      def error = @parameters["error"]

      # @return [String, nil] the URL of the hub's metadata
      def metadata = @parameters["resource_metadata"]
    end
  end
end
