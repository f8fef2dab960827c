# frozen_string_literal: true

module Hikyaku
  # A gem that is used where it is there. It is loaded when it is asked for.
  #
  # @api private
  class Library
    # @param name [String] what one adds to the Gemfile, and requires
    # @yieldreturn [Boolean] whether what was loaded can do what is needed
    def initialize(name, &can)
      @name = name
      @can = can
    end

    # @return [Boolean] whether it could be loaded
    def there?
      @there = loaded? if @there.nil?
      @there
    end

    # @param error [Class] what is raised where it is not there
    # @param what [String] it is needed for
    # @return [void]
    def there!(error, what)
      raise error, "#{what} needs the gem #{@name}: add `gem \"#{@name}\"` to the Gemfile" unless there?
    end

    private

    def loaded?
      require @name
      !!@can.call
    rescue LoadError
      false
    end
  end
end
