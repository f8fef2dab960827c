# frozen_string_literal: true

module Hikyaku
  class Server
    module Handover
      # A socket that keeps messages apart, so that descriptors never come without their bytes.
      KIND = :SEQPACKET
      # Bytes of a request that may be passed; a larger one does not fit into a message.
      MAX_REQUEST_BYTES = 131_072
    end
  end
end
