# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # Whether media queries match a screen, so far as types and the width say: the rest is not sure.
        #
        # Media Queries Level 4, section 2.
        module Media
          QUERY = /\A(?:(not|only) )?([a-z][a-z-]*)(?: and (.+))?\z/
          FEATURE = /\A\( ?(min|max)-width ?: ?([0-9]*\.?[0-9]+)(px|em|rem) ?\)\z/
          NO_TYPES = %w[and not only or layer].freeze
          PIXELS = {"px" => 1.0, "em" => 16.0, "rem" => 16.0}.freeze
          private_constant :QUERY, :FEATURE, :NO_TYPES, :PIXELS

          class << self
            def match(list, width: nil)
              list = normal(list)
              return true if list.empty?
              any(list.split(",", -1).map { |query| of(query.strip, width) })
            end

            def normal(text) = text.downcase(:ascii).gsub(/[\t\n\f\r ]+/, " ").delete_prefix(" ").delete_suffix(" ")

            private

            def of(query, width)
              return conditions(query, width) if query.start_with?("(")
              modifier, type, rest = QUERY.match(query)&.captures
              return if type.nil? || NO_TYPES.include?(type)
              fits = all([type == "all" || type == "screen", rest ? conditions(rest, width) : true])
              (modifier == "not" && !fits.nil?) ? !fits : fits
            end

            def conditions(text, width) = all(text.split(" and ", -1).map { |feature| feature(feature, width) })

            def feature(text, width)
              bound, number, unit = FEATURE.match(text)&.captures
              return unless bound && width
              pixels = number.to_f * PIXELS.fetch(unit)
              (bound == "min") ? width >= pixels : width <= pixels
            end

            def any(results)
              return true if results.include?(true)
              results.include?(nil) ? nil : false
            end

            def all(results)
              return false if results.include?(false)
              results.include?(nil) ? nil : true
            end
          end
        end
      end
    end
  end
end
