# frozen_string_literal: true

require_relative "contexts"
require_relative "errors"

module Hikyaku
  module Codec
    module Coding
      # The levels of compression that a coding has, with compressors of each.
      class Levels
        def initialize(name, levels, usual:, &make)
          @name = name
          @levels = levels
          @usual = usual
          @contexts = levels.to_h { |level| [level, Contexts.new { make.call(level) }] }.freeze
        end

        def check(level)
          return @usual if level.nil?
          return level if @contexts.key?(level)
          raise InvalidLevel, "#{level.inspect} is no level of the content coding #{@name}; it has #{@levels.begin} to #{@levels.end}"
        end

        def contexts(level) = @contexts.fetch(check(level))
      end
    end
  end
end
