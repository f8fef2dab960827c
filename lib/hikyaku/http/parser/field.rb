# frozen_string_literal: true

require_relative "malformed"

module Hikyaku
  module HTTP
    class Parser
      # One header or trailer line.
      #
      # RFC 9112, section 5; RFC 9110, section 5.
      module Field
        TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/n
        NAME = /\A#{TOKEN}:/n
        ONE_TOKEN = /\A#{TOKEN}\z/n
        # No control byte but the tab stands in a value or a reason phrase.
        CONTROL = /[\x00-\x08\x0A-\x1F\x7F]/n

        module_function

        def parse(line)
          raise Malformed.new(:folded) if line.start_with?(" ", "\t")
          name = line[NAME] or raise Malformed.new(:header_name)
          value = line.byteslice(name.bytesize, line.bytesize)
          raise Malformed.new(:header_value) if value.match?(CONTROL)
          [name.chop.freeze, value.strip.freeze].freeze
        end

        def values(headers, name)
          headers.filter_map { |each, value| value if each.bytesize == name.bytesize && each.casecmp?(name) }
        end

        def members(headers, name)
          values(headers, name).flat_map { |value| value.empty? ? [value] : value.split(",", -1).map(&:strip) }
        end
      end
    end
  end
end
