# frozen_string_literal: true

require_relative "field"
require_relative "malformed"
require_relative "version"

module Hikyaku
  module HTTP
    class Parser
      # HTTP-version SP status-code [SP reason-phrase]: the specification wants the second space always, servers do not.
      #
      # RFC 9112, section 4.
      class StatusLine
        STATUS = /\A[1-9][0-9][0-9](?: |\z)/n
        private_constant :STATUS

        attr_reader :status, :reason, :minor

        def self.parse(line, _limits)
          raise Malformed.new(:start_line) unless line.getbyte(Version::BYTES) == " ".ord
          minor = Version.minor(line.byteslice(0, Version::BYTES))
          rest = line.byteslice(Version::BYTES + 1, line.bytesize)
          status = rest[STATUS] or raise Malformed.new(:status_code)
          reason = rest.byteslice(status.bytesize, rest.bytesize)
          raise Malformed.new(:reason) if reason.match?(Field::CONTROL)
          new(status.to_i, reason.freeze, minor)
        end

        def initialize(status, reason, minor)
          @status = status
          @reason = reason
          @minor = minor
          freeze
        end
      end
    end
  end
end
