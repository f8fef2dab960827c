# frozen_string_literal: true

require_relative "format"

module Hikyaku
  module Log
    class Journal
      # A segment that the journal has, or is about to have.
      class Segment
        attr_reader :number
        attr_reader :first
        attr_reader :size
        attr_reader :seed
        attr_reader :header
        attr_accessor :file
        attr_reader :spare
        # Whether END or CLOSE stands behind its records.
        attr_writer :whole

        def initialize(header, whole: false, file: nil, spare: nil)
          @header = header
          @number = header.number
          @first = header.first
          @size = header.size
          @seed = Format.seed(header.salt)
          @whole = whole
          @file = file
          @spare = spare
        end

        def whole? = @whole

        def name = @name ||= Format.segment_name(number)
      end
    end
  end
end
