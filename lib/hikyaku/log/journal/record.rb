# frozen_string_literal: true

module Hikyaku
  module Log
    class Journal
      # One record, as it is read. `place` says where it stands, in one number: it is what `reread` takes.
      Record = Struct.new(:position, :type, :flags, :body, :place) do
        # @return [Integer] number of the segment
        def segment = place >> 32

        # @return [Integer] of the body's first byte, in bytes
        def offset = place & 0xffffffff
      end
    end
  end
end
