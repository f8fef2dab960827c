# frozen_string_literal: true

module Hikyaku
  module Codec
    module Rack
      module Representation
        # The field Vary: which fields of the request a response depends on.
        #
        # RFC 9110, section 12.5.5.
        module Vary
          module_function

          def lower(headers)
            headers.each_with_object({}) do |(name, value), lower|
              name = name.to_s.downcase
              lower[name] = (name == "vary") ? [*lower[name], *value].join(", ") : value
            end
          end

          def add(headers, name)
            value = with(headers["vary"], name)
            (value == headers["vary"]) ? headers : headers.merge("vary" => value)
          end

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
