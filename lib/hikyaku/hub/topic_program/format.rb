# frozen_string_literal: true

module Hikyaku
  class Hub
    # The numbers of docs/topic-program.md.
    class TopicProgram
      # Of the format.
      VERSION = 1
      # Instructions that a program may have.
      MAX_INSTRUCTIONS = 16_384
      # Different byte sets that a program may have.
      MAX_SETS = 255
      # Steps that a run may take, for each byte of the text and beside that; after them it is given up, and the text counts as not
      # matching. Patterns that people write take less than ten a byte.
      STEPS_A_BYTE = 32
      STEPS = 1_024
      # Steps that no run may take more of.
      MAX_STEPS = 65_536

      # Instructions. See docs/topic-program.md.
      MATCH, BYTE, SET, ANY, JUMP, SPLIT, START, FINISH = 0, 1, 2, 3, 4, 5, 6, 7
      private_constant :MATCH, :BYTE, :SET, :ANY, :JUMP, :SPLIT, :START, :FINISH

      def self.allowed_steps(size) = [STEPS + STEPS_A_BYTE * size, MAX_STEPS].min
    end
  end
end
