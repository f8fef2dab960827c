# frozen_string_literal: true

module Hikyaku
  class Web
    class Authorization
      # Keys that the configuration holds: they never change while the hub runs.
      class StaticKeys
        def initialize(keys)
          @keys = keys.freeze
          freeze
        end

        def keys(_now) = @keys

        def keys_after_refresh(_now) = @keys

        def held = @keys

        def refreshable? = false

        def inspect = "#<#{self.class} #{@keys.size}>"
      end
    end
  end
end
