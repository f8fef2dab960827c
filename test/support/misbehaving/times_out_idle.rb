# frozen_string_literal: true

require_relative "well_behaved"

module Misbehaving
  # When no next request comes in time, it answers the one that was not made: 408, and closes.
  class TimesOutIdle < WellBehaved
    # @param seconds [Numeric]
    def initialize(seconds: 0.05)
      @seconds = seconds
    end

    def misbehave(connection, request)
      behave(connection, request)
      return if connection.more?(@seconds)
      connection.write("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
      connection.close
    end
  end
end
