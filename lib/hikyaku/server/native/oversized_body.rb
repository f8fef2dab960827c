# frozen_string_literal: true

require_relative "../../web/problem"

module Hikyaku
  class Server
    class Native
      # The input of a request whose body was too large to be kept. To take it for empty would be to answer another
      # request: whoever reads it is told, and the client with him.
      class OversizedBody
        def initialize(limit)
          @limit = limit
        end

        def read(*) = raise(Web::Problem.new(413, "the body is larger than the #{@limit} bytes that max_request_bytes allows"))
        alias_method :gets, :read
        alias_method :each, :read

        def close = nil
      end
    end
  end
end
