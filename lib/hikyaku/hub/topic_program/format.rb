# frozen_string_literal: true

module Hikyaku
  class Hub
    # The numbers of docs/topic-program.md.
    class TopicProgram
      VERSION = 1
      # Instructions that a program may have.
      MAX_INSTRUCTIONS = 16_384
      # Different byte sets that a program may have.
      MAX_SETS = 255
      # Steps that a run may take, for each byte of the text and in addition. A run that takes more ends, and the text does not match.
      # Patterns that people write take less than ten a byte.
      STEPS_A_BYTE = 32
      STEPS = 1_024
      # The limit for texts of any length.
      MAX_STEPS = 65_536

      # Instructions. See docs/topic-program.md.
      MATCH, BYTE, SET, ANY, JUMP, SPLIT, START, FINISH = 0, 1, 2, 3, 4, 5, 6, 7
      private_constant :MATCH, :BYTE, :SET, :ANY, :JUMP, :SPLIT, :START, :FINISH

      def self.allowed_steps(size) = [STEPS + STEPS_A_BYTE * size, MAX_STEPS].min
    end
  end
end
