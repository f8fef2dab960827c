# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  class Hub
    # To come.
    class UriTemplate
      # @return [UriTemplate, nil]
      def self.compile(pattern) = nil
    end
  end
end
