# frozen_string_literal: true

module Hikyaku
  module Log
    class Journal
      # One record, as it is read. `place` says where it stands, in one number: it is what `reread` takes.
      Record = Struct.new(:position, :type, :flags, :body, :place) do
        def segment = place >> 32

        def offset = place & 0xffffffff
      end
    end
  end
end
