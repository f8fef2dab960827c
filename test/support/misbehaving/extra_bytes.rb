# frozen_string_literal: true

require_relative "on_nth"

module Misbehaving
  # Sends more than it announced.
  class ExtraBytes < OnNth
    BYTES = "<!-- more than was announced -->"

    # @param bytes [String]
    def initialize(n: 1, bytes: BYTES)
      super(n: n)
      @bytes = bytes
    end

    def misbehave(connection, request) = connection.write(Answer.to(request).bytes + @bytes)
  end
end
