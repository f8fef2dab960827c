# frozen_string_literal: true

require_relative "../../error"
require_relative "../../support/url"

module Hikyaku
  class Hub
    class UrlPattern
      # Canonicalises the fixed text of a pattern, as URL parsing would.
      #
      # URL Pattern Standard, "Encoding callbacks". Where the standard runs the URL parser from one of its states, these methods do the
      # same as that state.
      module Canonical
        IPV6 = /\A[\h\[\]:]*\z/
        BREAKS = "\t\n\r"
        private_constant :IPV6, :BREAKS

        class << self
          def protocol(value)
            return value if value.empty?
            URL.parse("#{value}://dummy.invalid/")&.protocol or refuse("scheme", value)
          end

          def username(value) = URL::Percent.encode(value, :userinfo)

          alias_method :password, :username

          def hostname(value)
            return value if value.empty?
            host = value.delete(BREAKS)[/\A[^\/?\#\\]*/]
            refuse("host", value) if host.empty? || host.gsub(/\[[^\]]*(?:\]|\z)/, "").include?(":")
            URL::Host.parse(host, true) or refuse("host", value)
          end

          def ipv6_hostname(value)
            refuse("IPv6 address", value) unless IPV6.match?(value)
            value.downcase
          end

          def port(value, protocol = "https")
            return value if value.empty?
            digits = value.delete(BREAKS)[/\A[0-9]+/]&.sub(/\A0+(?=[0-9])/, "")
            refuse("port", value) if digits.nil? || digits.size > 5 || digits.to_i > 65_535
            (digits == URL::PORTS[protocol]) ? "" : digits
          end

          def pathname(value)
            return value if value.empty?
            rooted = value.start_with?("/")
            # The prefix keeps dot segments, which the beginning of a path would lose.
            value = "/-#{value}" unless rooted
            path = URL::Path.new
            path.append(value.delete(BREAKS).delete_prefix("/"), "https")
            rooted ? path.to_s : path.to_s[2..].to_s
          end

          def opaque_pathname(value)
            path = value.delete(BREAKS)
            URL::Path.opaque(path[/\A[^?\#]*/], followed: path.match?(/[?\#]/)).to_s
          end

          def search(value) = URL::Percent.encode(value.delete(BREAKS), :special_query)

          def hash(value) = URL::Percent.encode(value.delete(BREAKS), :fragment)

          def ipv6?(pattern) = pattern.size > 1 && pattern.start_with?("[", "{[", "\\[")

          private

          def refuse(component, value) = raise(InvalidMatcher, "URL pattern has an invalid #{component}: #{value.inspect}")
        end
      end
      private_constant :Canonical
    end
  end
end
