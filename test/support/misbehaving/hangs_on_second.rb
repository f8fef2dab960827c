# frozen_string_literal: true

require_relative "on_nth"

module Misbehaving
  # Reads on, and says nothing any more.
  class HangsOnSecond < OnNth
    def initialize(n: 2)
      super
    end

    def misbehave(connection, _request)
      nil while connection.read
    end
  end
end
