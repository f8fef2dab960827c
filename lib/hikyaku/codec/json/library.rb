# frozen_string_literal: true

require "json"
require_relative "../format"

module Hikyaku
  module Codec
    class JSON < Format
      # The json that is there: Ruby's own, or a newer one.
      module Library
        VERSION = ::JSON::VERSION.split(".").map(&:to_i).freeze
        private_constant :VERSION

        def self.from?(major, minor) = (VERSION <=> [major, minor]) >= 0
      end
    end
  end
end
