# frozen_string_literal: true

require_relative "../error"
require_relative "../support/url"

module Hikyaku
  class Hub
    # A URL pattern: one pattern for each of the eight components of a URL, all of which must match. Immutable.
    #
    # URL Pattern Standard (without ignoreCase, which the Mercure protocol forbids; without the values of groups, which
    # matching topics does not need); Mercure draft-08, section "URL Pattern".
    class UrlPattern
      # Compiles a pattern.
      def self.compile(pattern, base: nil) = new(Compiler.new(pattern, base).components)

      def initialize(components)
        @components = components
        @origin = find_origin
        tested = @origin ? %i[username password pathname search hash] : NAMES
        @pathname = components[:pathname]
        @tests = (tested - [:pathname]).map { |name| [name, components[name]] }.reject { |_, component| component.any? }.freeze
        freeze
      end

      def match?(url)
        return false if @origin && @origin != url.origin
        @pathname.match?(url.pathname) && @tests.all? { |name, component| component.match?(url.__send__(name)) }
      end

      # Tests what the standard allows: a URL, relative to a base, or components.
      def match_input?(input, base: nil)
        if input.is_a?(Hash)
          raise InvalidMatcher, "URL components have their base among them" if base
          values = begin
            Init.url(input.transform_keys(&:to_sym))
          rescue InvalidMatcher
            return false
          end
          return @components.all? { |name, component| component.match?(values[name]) }
        end
        url = URL.parse(input, base: base)
        !url.nil? && match?(url)
      end

      attr_reader :origin

      def leading_path
        beginning = @pathname.beginning
        known = beginning[/\A.*\//m]
        known || ("/" if URL::PORTS.key?(@components[:protocol].literal))
      end

      # The programs of the components as bytes: see docs/topic-program.md.
      def program
        NAMES.map { |name| @components[name].program.bytes.then { |bytes| [bytes.bytesize].pack("N") + bytes } }.join.freeze
      end

      def cost = @components.each_value.sum { |component| component.program.cost }

      def cost_in_ruby = @components.each_value.sum { |component| component.program.cost_in_ruby }

      def size = @components.each_value.sum { |component| component.program.size }

      attr_reader :components

      def inspect = "#<#{self.class} #{@origin}#{leading_path}…>"

      private

      def find_origin
        protocol, hostname, port = %i[protocol hostname port].map { |name| @components[name].literal }
        return unless protocol && hostname && port
        port.empty? ? "#{protocol}://#{hostname}" : "#{protocol}://#{hostname}:#{port}"
      end
    end
  end
end

require_relative "url_pattern/compiler"
