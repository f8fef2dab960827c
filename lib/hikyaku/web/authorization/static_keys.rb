# frozen_string_literal: true

module Hikyaku
  class Web
    class Authorization
      # Keys that the configuration holds: they never change while the hub runs.
      class StaticKeys
        # @param keys [Array<Key>]
        def initialize(keys)
          @keys = keys.freeze
          freeze
        end

        # @return [Array<Key>]
        def keys(_now) = @keys

        # @return [Array<Key>]
        def keys_after_refresh(_now) = @keys

        # @return [Array<Key>]
        def held = @keys

        # @return [Boolean] whether they may change
        def refreshable? = false

        # @return [String]
        def inspect = "#<#{self.class} #{@keys.size}>"
      end
    end
  end
end
