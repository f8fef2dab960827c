# frozen_string_literal: true

require_relative "on_nth"

module Misbehaving
  # Says that it closes, and answers on.
  class GoesOnAfterClose < OnNth
    def misbehave(connection, request) = connection.write(Answer.to(request).with("Connection" => "close").bytes)
  end
end
