# frozen_string_literal: true

module Bench
  # Numbers as one reads them.
  module Digits
    # @param number [Numeric]
    # @return [String] its thousands apart; what stands after a point is not grouped
    def self.grouped(number) = number.to_s.sub(/\A\d+/) { |whole| whole.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",") }
  end
end
