# frozen_string_literal: true

module Hikyaku
  module Broker
    class RubyEngine
      # Bytes of clients that should be text.
      module Text
        module_function

        def utf8?(bytes) = bytes.dup.force_encoding(Encoding::UTF_8).valid_encoding?

        # As UTF-8, with something readable in place of bytes that are none.
        def readable(bytes) = bytes.dup.force_encoding(Encoding::UTF_8).scrub
      end
    end
  end
end
