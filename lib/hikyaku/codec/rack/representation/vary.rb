# frozen_string_literal: true

module Hikyaku
  module Codec
    module Rack
      module Representation
        # The field Vary: which fields of the request a response depends on.
        #
        # RFC 9110, section 12.5.5.
        #
        # @api private
        module Vary
          module_function

          # @param headers [Hash{String => String, Array<String>}] in any case
          # @return [Hash{String => String}] names in lower case, as Rack wants them, and one field Vary
          def lower(headers)
            headers.each_with_object({}) do |(name, value), lower|
              name = name.to_s.downcase
              lower[name] = (name == "vary") ? [*lower[name], *value].join(", ") : value
            end
          end

          # @param headers [Hash{String => String}] of a response
          # @param name [String] of a field, in lower case
          # @return [Hash{String => String}] the same with the field, or the very same if that was there
          def add(headers, name)
            value = with(headers["vary"], name)
            (value == headers["vary"]) ? headers : headers.merge("vary" => value)
          end

          # @param value [String, nil]
          # @param name [String]
          # @return [String]
          def with(value, name)
            names = value.to_s.downcase.split(",").map(&:strip)
            return value if names.include?(name) || names.include?("*")
            [*(value unless names.empty?), name.capitalize].join(", ")
          end
        end
      end
    end
  end
end
