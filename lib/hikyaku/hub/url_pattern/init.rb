# frozen_string_literal: true

require_relative "../../error"
require_relative "../../support/url"
require_relative "canonical"

module Hikyaku
  class Hub
    class UrlPattern
      # Completes the components of a pattern (or of a URL given as components) with those of its base URL. Only components that are
      # less specific than all the given ones are taken from the base.
      #
      # URL Pattern Standard, "URLPatternInit processing".
      class Init
        # From the least specific to the most; of a pattern, username and password are never taken from the base.
        NAMES = %i[protocol username password hostname port pathname search hash].freeze
        ORDER = %i[protocol hostname port pathname search hash].freeze
        IDENTITY = %i[protocol hostname port username password].freeze
        private_constant :ORDER, :IDENTITY

        class << self
          def pattern(init) = new(init, pattern: true).result

          def url(init) = NAMES.to_h { |name| [name, ""] }.merge(new(init, pattern: false).result)

          def escape(text) = text.gsub(/[+*?:{}()\\]/) { |char| "\\#{char}" }
        end

        def initialize(init, pattern:)
          @init = init
          @pattern = pattern
          @base = base
        end

        def result
          result = inherited
          NAMES.each do |name|
            value = @init[name] or next
            result[name] = canonical(name, plain(name, value), result[:protocol])
          end
          result
        end

        private

        def base
          string = @init[:baseURL] or return
          URL.parse(string) or raise InvalidMatcher, "URL pattern has an invalid base URL: #{string.inspect}"
        end

        def inherited
          return {} unless @base
          result = take(ORDER)
          @pattern ? result : take(IDENTITY).slice(:username, :password).merge(result)
        end

        # The components in this order up to the first that is named.
        def take(names)
          names.take_while { |name| !@init.key?(name) }.to_h { |name| [name, from_base(@base.__send__(name), name)] }
        end

        def from_base(value, name = nil) = (@pattern && name != :port) ? self.class.escape(value) : value

        # Without the delimiter, and a relative path within that of the base.
        def plain(name, value)
          case name
          when :protocol then value.delete_suffix(":")
          when :search then value.delete_prefix("?")
          when :hash then value.delete_prefix("#")
          when :pathname then within_base(value)
          else value
          end
        end

        def within_base(value)
          return value if @base.nil? || @base.opaque_path? || absolute?(value)
          directory = from_base(@base.pathname)[/\A.*\//m]
          "#{directory}#{value}"
        end

        def absolute?(value) = @pattern ? value.start_with?("/", "\\/", "{/") : value.start_with?("/")

        def canonical(name, value, protocol)
          return value if @pattern
          case name
          when :port then Canonical.port(value, protocol || "")
          when :pathname then (protocol.to_s.empty? || URL::PORTS.key?(protocol)) ? Canonical.pathname(value) : Canonical.opaque_pathname(value)
          else Canonical.public_send(name, value)
          end
        end
      end
      private_constant :Init
    end
  end
end
