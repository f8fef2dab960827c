# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  class Hub
    # To come.
    class UrlPattern
      # @return [UrlPattern]
      def self.compile(pattern, base:) = raise(InvalidMatcher, "URL patterns are not there yet")
    end
  end
end
