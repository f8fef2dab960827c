# frozen_string_literal: true

require_relative "handover/receiver"
require_relative "handover/sender"

module Hikyaku
  class Server
    # Passes a client's connection, with the request that was read from it, to the process that holds the hub. The client
    # notices nothing; the process that accepted it may end.
    #
    #     worker:  Sender#call(socket, request) ── descriptor and bytes over a Unix socket ──► Receiver ──► the hub's loop
    #
    # One message for each connection: the request's bytes, with the descriptor beside them (SCM_RIGHTS). Only processes of
    # the same user are listened to.
    module Handover
    end
  end
end
