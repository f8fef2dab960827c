# frozen_string_literal: true

require_relative "on_nth"

module Misbehaving
  # Answers the second request of a connection with an error, and closes.
  class RefusesSecond < OnNth
    REASONS = {400 => "Bad Request", 501 => "Not Implemented", 503 => "Service Unavailable"}.freeze
    private_constant :REASONS

    # @param status [Integer] 400, 501 or 503
    # @param announced [Boolean] whether it says that it closes
    def initialize(n: 2, status: 400, announced: true)
      super(n: n)
      @status = status
      @announced = announced
    end

    def misbehave(connection, _request)
      headers = {"Content-Length" => 0, "Connection" => @announced ? "close" : nil}.compact
      connection.write(Answer.new("HTTP/1.1", "#{@status} #{REASONS.fetch(@status)}", headers, "").bytes)
      connection.close
    end
  end
end
