# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # Something that a page has in it and that a browser asks for: a value.
        class Inline
          # @return [String] absolute, as it is asked for, without fragment
          attr_reader :url
          # @return [Symbol] :image, :style, :script, :font or :other
          attr_reader :kind
          # @return [String, nil] of a preload, what it is for, in lower case
          attr_reader :as
          # @return [Symbol, nil] :anonymous or :credentials where it is asked for in CORS mode, else nil
          attr_reader :crossorigin
          # @return [String, nil] the policy by which the field Referer is made, in lower case, where element or page name one
          attr_reader :referrer_policy

          # @api private
          def initialize(url:, kind:, as: nil, crossorigin: nil, referrer_policy: nil, script_module: false)
            @url = url
            @kind = kind
            @as = as
            @crossorigin = crossorigin
            @referrer_policy = referrer_policy
            @script_module = script_module
            freeze
          end

          # @return [Boolean] whether it is a script module, whose imports are asked for next
          def module? = @script_module

          # @return [Boolean] the same in everything
          def ==(other) = other.is_a?(Inline) && other.facts == facts
          alias_method :eql?, :==

          # @return [Integer]
          def hash = facts.hash

          # @return [String]
          def inspect = "#<Inline #{@kind} #{@url}>"

          protected

          def facts = [@url, @kind, @as, @crossorigin, @referrer_policy, @script_module]
        end
      end
    end
  end
end
