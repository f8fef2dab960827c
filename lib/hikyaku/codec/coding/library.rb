# frozen_string_literal: true

require_relative "errors"

module Hikyaku
  module Codec
    module Coding
      # A gem that is used where it is there.
      #
      # @api private
      class Library
        # @param coding [String] what it is needed for
        # @param gem [String] what one adds to the Gemfile, and requires
        # @yieldreturn [Boolean] whether what was loaded can do what is needed
        def initialize(coding, gem, &can)
          @coding = coding
          @gem = gem
          @can = can
        end

        # @return [Boolean] whether it could be loaded
        def there?
          @there = loaded? if @there.nil?
          @there
        end

        # @raise [Unavailable]
        def there!
          raise Unavailable, "the content coding #{@coding} needs the gem #{@gem}: add `gem \"#{@gem}\"` to the Gemfile" unless there?
        end

        private

        def loaded?
          require @gem
          @can.call
        rescue LoadError
          false
        end
      end
    end
  end
end
