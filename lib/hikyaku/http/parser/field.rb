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
        FRAMES = /\A(?:content-length|transfer-encoding)\z/i
        private_constant :FRAMES

        module_function

        def parse(line)
          raise Malformed.new(:folded) if folded?(line)
          name = line[NAME] or raise Malformed.new(:header_name)
          [name.chop.freeze, text(line.byteslice(name.bytesize, line.bytesize)).freeze].freeze
        end

        def folded?(line) = line.start_with?(" ", "\t")

        # RFC 9112, section 5.2. What frames the message stands on one line, or two readers might find its end in different places.
        def unfold(name, value, folds, longest)
          raise Malformed.new(:folded) if name.match?(FRAMES)
          whole = +value
          folds.each do |line|
            more = text(line)
            whole << " " unless whole.empty? || more.empty?
            whole << more
            raise Malformed.new(:line_too_long) if name.bytesize + 1 + whole.bytesize > longest
          end
          [name, whole.freeze].freeze
        end

        def text(bytes)
          raise Malformed.new(:header_value) if bytes.match?(CONTROL)
          bytes.strip
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
