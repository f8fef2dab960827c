# frozen_string_literal: true

module Hikyaku
  class Railtie < ::Rails::Railtie
    module CodecGlue
      # Where a template is looked for that says MessagePack, one that says JSON will do: what it renders is packed afterwards.
      # Before ActionView::LookupContext.
      module Fallback
        JSON = :json
        private_constant :JSON

        def formats=(values)
          wanting = values&.include?(NAME) && !values.include?(JSON) && !values.include?("*/*")
          super(if wanting
                  values.flat_map { |value| (value == NAME) ? [NAME, JSON] : [value] }
                else
                  values
                end)
        end
      end
    end
  end
end
