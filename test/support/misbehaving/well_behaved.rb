# frozen_string_literal: true

require_relative "answer"

module Misbehaving
  # Answers each request as it should. Others misbehave when their time has come.
  class WellBehaved
    # @param connection [Connection]
    # @return [void] when no more is to be done on it
    def serve(connection)
      while (request = connection.read)
        answer(connection, request)
      end
    end

    # @param connection [Connection]
    # @param request [Request] its last
    def answer(connection, request)
      due?(connection, request) ? misbehave(connection, request) : behave(connection, request)
    end

    # @return [Boolean]
    def due?(_connection, _request) = true

    # @param connection [Connection]
    # @param request [Request] its last
    def misbehave(connection, request) = behave(connection, request)

    # @param connection [Connection]
    # @param request [Request] its last
    def behave(connection, request) = connection.write(Answer.to(request).bytes)
  end
end
