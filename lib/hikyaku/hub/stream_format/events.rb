# frozen_string_literal: true

module Hikyaku
  class Hub
    module StreamFormat
      # Server-Sent Events: the bytes of the log's records.
      class Events
        def encode(_position, record) = record.frame

        def encode_frame(frame) = frame

        def add_stream = nil

        def remove_stream = nil

        def inspect = "#<#{self.class.name}>"
      end
    end
  end
end
