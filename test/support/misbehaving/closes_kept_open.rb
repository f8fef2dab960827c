# frozen_string_literal: true

require_relative "on_nth"

module Misbehaving
  # Keeps a connection open, and closes it without an answer when the next request comes.
  class ClosesKeptOpen < OnNth
    def initialize(n: 2)
      super
    end

    def misbehave(connection, _request) = connection.close
  end
end
