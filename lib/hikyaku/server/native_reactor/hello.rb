# frozen_string_literal: true

module Hikyaku
  class Server
    class NativeReactor
      # A client that has said HELLO to the broker, and waits for a decision. It is decided once; one that is never decided is refused.
      #
      # It has the attributes of Broker::AuthRequest.
      class Hello
        def serial = parts[0]

        def identity = parts[1]

        def credentials = parts[2]

        def kind = parts[3]

        def agent = parts[4]

        def address = parts[5]

        def decided? = _decided

        def inspect = "#<#{self.class.name}#{" decided" if decided?}>"

        private

        def parts = @parts ||= _parts
      end
    end
  end
end
