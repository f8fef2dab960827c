# frozen_string_literal: true

require_relative "../../error"
require_relative "canonical"
require_relative "component"
require_relative "constructor_string"
require_relative "init"

module Hikyaku
  class Hub
    class UrlPattern
      NAMES = Init::NAMES
      private_constant :NAMES

      # Makes the eight components of a pattern.
      #
      # URL Pattern Standard, "create" a URL pattern.
      class Compiler
        def initialize(pattern, base)
          @init = pattern.is_a?(Hash) ? of_hash(pattern, base) : of_string(pattern, base)
        end

        def components
          patterns = NAMES.to_h { |name| [name, "*"] }.merge(Init.pattern(@init))
          patterns[:port] = "" if !patterns[:port].empty? && patterns[:port] == URL::PORTS[patterns[:protocol]]
          protocol = protocol(patterns[:protocol])
          patterns.to_h do |name, pattern|
            [name, (name == :protocol) ? protocol : component(name, pattern, special: special?(protocol))]
          end
        end

        private

        def of_hash(pattern, base)
          raise InvalidMatcher, "URL pattern of components has its base among them" if base
          pattern.transform_keys(&:to_sym)
        end

        def of_string(pattern, base)
          init = ConstructorString.parse(pattern) { |protocol| special?(protocol(protocol)) }
          raise InvalidMatcher, "URL pattern #{pattern.inspect} is relative, and there is no base URL" unless base || init.key?(:protocol)
          # With a base the standard would put "urn\\:books\\:*" below the base's path. The hub's URL is for relative patterns.
          (base && !init.key?(:protocol)) ? init.merge(baseURL: base) : init
        end

        def protocol(pattern) = Component.compile(pattern, encode: Canonical.method(:protocol))

        def special?(protocol) = URL::PORTS.each_key.any? { |scheme| protocol.match?(scheme) }

        def component(name, pattern, special:)
          case name
          when :hostname
            Component.compile(pattern, encode: Canonical.method(Canonical.ipv6?(pattern) ? :ipv6_hostname : :hostname), delimiter: ".")
          when :pathname
            return Component.compile(pattern, encode: Canonical.method(:opaque_pathname)) unless special
            Component.compile(pattern, encode: Canonical.method(:pathname), delimiter: "/", prefix: "/")
          else Component.compile(pattern, encode: Canonical.method(name))
          end
        end
      end
      private_constant :Compiler
    end
  end
end
