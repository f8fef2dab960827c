# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # Something that a page has in it and that a browser asks for: a value.
        class Inline
          attr_reader :url
          attr_reader :kind
          attr_reader :as
          attr_reader :crossorigin
          attr_reader :referrer_policy

          def initialize(url:, kind:, as: nil, crossorigin: nil, referrer_policy: nil, script_module: false)
            @url = url
            @kind = kind
            @as = as
            @crossorigin = crossorigin
            @referrer_policy = referrer_policy
            @script_module = script_module
            freeze
          end

          def module? = @script_module

          def ==(other) = other.is_a?(Inline) && other.facts == facts
          alias_method :eql?, :==

          def hash = facts.hash

          def inspect = "#<Inline #{@kind} #{@url}>"

          protected

          def facts = [@url, @kind, @as, @crossorigin, @referrer_policy, @script_module]
        end
      end
    end
  end
end
