# frozen_string_literal: true

require_relative "position_cipher"

module Hikyaku
  module Log
    # Seals the positions of one log with several keys, one after the other: a log that may have lost its newest records goes on
    # with another key, so that an id that was lost never comes to stand for another record.
    #
    #     key 1: 0 … 99 | key 2: 100 … | positions 80 to 99 of key 1 are unknown when the log ended at 79
    class Generations
      def initialize(cipher)
        @first = 0
        @cipher = cipher
        @earlier = []
      end

      # Seals with another key from a position on.
      def begin(first, cipher)
        @earlier << [@first, @cipher]
        @first = first
        @cipher = cipher
      end

      def seal(position)
        return @cipher.seal(position) if position >= @first
        @earlier.reverse_each { |first, cipher| return cipher.seal(position) if position >= first }
      end

      def open(id, newest)
        position = @cipher.open(id) or return
        return position if position.between?(@first, newest)
        behind = @first
        @earlier.reverse_each do |first, cipher|
          position = cipher.open(id)
          return position if position >= first && position < behind
          behind = first
        end
        nil
      end

      def inspect = "#<#{self.class.name}>"
    end
  end
end
