# frozen_string_literal: true

require "socket"

# A port for a server that a test starts, and perhaps starts again. Not one of those that the system gives to clients: beside
# tests with thousands of connections it would soon be one's local end.
module FreePort
  RANGE = 15_000..31_000
  private_constant :RANGE

  module_function

  # @return [Integer]
  def pick
    port = rand(RANGE)
    TCPServer.open("127.0.0.1", port).close
    port
  rescue Errno::EADDRINUSE
    retry
  end
end
