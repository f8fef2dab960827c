# frozen_string_literal: true

require_relative "on_nth"

module Misbehaving
  # Breaks off in the middle of an answer: the client gets ECONNRESET.
  class Resets < OnNth
    # @param after [Float] how much of the answer comes before; of what is on its way the client may lose some
    def initialize(n: 1, after: 0.5)
      super(n: n)
      @after = after
    end

    def misbehave(connection, request)
      bytes = Answer.to(request).bytes
      connection.write(bytes.byteslice(0, (bytes.bytesize * @after).to_i))
      connection.reset
    end
  end
end
