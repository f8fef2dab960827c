# frozen_string_literal: true

module Hikyaku
  module HTTP
    module ContentCoding
      # Gems that are used where they are there.
      #
      # @api private
      module Library
        @there = {}

        # @param name [String] what one requires
        # @return [Boolean] whether it could be loaded
        def self.there?(name)
          @there.fetch(name) { @there[name] = loaded?(name) }
        end

        def self.loaded?(name)
          require name
          true
        rescue LoadError
          false
        end
        private_class_method :loaded?
      end
    end
  end
end
