# frozen_string_literal: true

require "yard"
require_relative "architecture"

# What the comments in lib/ say, read by YARD.
module Documentation
  # Said by Ruby itself.
  UNDERSTOOD = %i[inspect pretty_print to_s == eql? hash].freeze

  class << self
    def registry
      @registry ||= begin
        YARD::Logger.instance.level = YARD::Logger::ERROR
        YARD::Registry.clear
        YARD.parse(Dir[File.join(Architecture::LIB, "**/*.rb")])
        YARD::Registry
      end
    end

    def hidden?(method) = method.tag(:api)&.text == "private" || UNDERSTOOD.include?(method.name)
  end
end
