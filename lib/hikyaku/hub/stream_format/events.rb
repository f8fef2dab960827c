# frozen_string_literal: true

module Hikyaku
  class Hub
    module StreamFormat
      # Server-Sent Events: the bytes of the log's records.
      class Events
        def initialize = @streams = 0

        def encode(_position, record) = record.frame

        def encode_frame(frame) = frame

        def add_stream = @streams += 1

        def remove_stream = @streams -= 1

        def used? = @streams > 0

        def inspect = "#<#{self.class.name}>"
      end
    end
  end
end
