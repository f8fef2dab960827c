# frozen_string_literal: true

require_relative "format"

module Hikyaku
  module Log
    class Journal
      # A segment that the journal has, or is about to have.
      class Segment
        # @return [Integer]
        attr_reader :number
        # @return [Integer] position of the first record that it holds, or will hold
        attr_reader :first
        # @return [Integer] bytes
        attr_reader :size
        # @return [Integer] what the checksums of its records go on from
        attr_reader :seed
        # @return [Format::Header]
        attr_reader :header
        # @return [File, nil] while it is written to
        attr_accessor :file
        # @return [String, nil] the name of its file until it has its own
        attr_reader :spare
        # Whether END or CLOSE stands behind its records.
        attr_writer :whole

        # @param header [Format::Header]
        # @param whole [Boolean]
        # @param file [File, nil]
        # @param spare [String, nil]
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

        # @return [Boolean]
        def whole? = @whole

        # @return [String] the name of its file
        def name = @name ||= Format.segment_name(number)
      end
    end
  end
end
