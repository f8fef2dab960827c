# frozen_string_literal: true

require_relative "field"
require_relative "malformed"
require_relative "target"
require_relative "version"

module Hikyaku
  module HTTP
    class Parser
      # method SP request-target SP HTTP-version
      #
      # RFC 9112, section 3.
      class RequestLine
        METHOD = /\A#{Field::TOKEN}(?= )/n
        # Visible ASCII without the "#", and bytes beyond ASCII: no URL has them, but programs send them, and a path or query
        # with them means one thing only.
        TARGET = /\A[\x21\x22\x24-\x7E\x80-\xFF]*/n
        private_constant :METHOD, :TARGET

        attr_reader :method, :target, :minor

        def self.parse(line, limits)
          method = line[METHOD] or raise Malformed.new(:method)
          raise Malformed.new(:method_too_long) if method.bytesize > limits.method_bytes
          rest = line.byteslice(method.bytesize + 1, line.bytesize)
          target = rest[TARGET]
          version = rest.byteslice(target.bytesize, rest.bytesize)
          raise Malformed.new(:target) unless version.empty? || version.start_with?(" ")
          raise Malformed.new(:start_line) if target.empty? || version.bytesize != Version::BYTES + 1
          raise Malformed.new(:target_too_long) if target.bytesize > limits.target_bytes
          minor = Version.minor(version.byteslice(1, Version::BYTES))
          new(method.freeze, Target.new(method, target.freeze), minor)
        end

        def initialize(method, target, minor)
          @method = method
          @target = target
          @minor = minor
          freeze
        end
      end
    end
  end
end
