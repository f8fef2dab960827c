# frozen_string_literal: true

module Hikyaku
  # A gem that is used where it is there. It is loaded when it is asked for.
  class Library
    def initialize(name, &can)
      @name = name
      @can = can
    end

    def there?
      @there = loaded? if @there.nil?
      @there
    end

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
