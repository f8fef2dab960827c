# frozen_string_literal: true

module Hikyaku
  module Codec
    module Reading
      # Numbers that are read at a glance.
      module Number
        def self.text(integer) = integer.to_s.gsub(/\B(?=(?:\d{3})+\z)/, ",")
      end
    end
  end
end
