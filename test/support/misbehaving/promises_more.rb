# frozen_string_literal: true

require_relative "on_nth"

module Misbehaving
  # Announces more than it sends, and closes.
  class PromisesMore < OnNth
    def misbehave(connection, request)
      answer = Answer.to(request)
      connection.write(answer.with("Content-Length" => answer.body.bytesize + 10).bytes)
      connection.close
    end
  end
end
