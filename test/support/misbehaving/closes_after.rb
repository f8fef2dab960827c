# frozen_string_literal: true

require_relative "on_nth"

module Misbehaving
  # Closes each connection after so many answers.
  class ClosesAfter < OnNth
    # @param announced [Boolean] whether the last one says so
    def initialize(n: 1, announced: false)
      super(n: n)
      @announced = announced
    end

    def misbehave(connection, request)
      answer = Answer.to(request)
      answer = answer.with("Connection" => "close") if @announced
      connection.write(answer.bytes)
      connection.close
    end
  end
end
