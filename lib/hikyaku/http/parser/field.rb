# frozen_string_literal: true

require_relative "malformed"

module Hikyaku
  module HTTP
    class Parser
      # One header or trailer line.
      #
      # RFC 9112, section 5; RFC 9110, section 5.
      #
      # @api private
      module Field
        TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/n
        NAME = /\A#{TOKEN}:/n
        ONE_TOKEN = /\A#{TOKEN}\z/n
        # No control byte but the tab stands in a value or a reason phrase.
        CONTROL = /[\x00-\x08\x0A-\x1F\x7F]/n

        module_function

        # @param line [String]
        # @return [Array(String, String)] name and value
        # @raise [Malformed]
        def parse(line)
          raise Malformed.new(:folded) if line.start_with?(" ", "\t")
          name = line[NAME] or raise Malformed.new(:header_name)
          value = line.byteslice(name.bytesize, line.bytesize)
          raise Malformed.new(:header_value) if value.match?(CONTROL)
          [name.chop.freeze, value.strip.freeze].freeze
        end

        # @param headers [Array<Array(String, String)>]
        # @param name [String] in lower case
        # @return [Array<String>]
        def values(headers, name)
          headers.filter_map { |each, value| value if each.bytesize == name.bytesize && each.casecmp?(name) }
        end

        # @param headers [Array<Array(String, String)>]
        # @param name [String] in lower case
        # @return [Array<String>] the members of a list, over all fields of the name; empty ones included
        def members(headers, name)
          values(headers, name).flat_map { |value| value.empty? ? [value] : value.split(",", -1).map(&:strip) }
        end
      end
    end
  end
end
