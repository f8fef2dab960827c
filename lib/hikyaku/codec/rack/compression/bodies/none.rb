# frozen_string_literal: true

module Hikyaku
  module Codec
    module Rack
      class Compression
        module Bodies
          # The body of an answer to HEAD. It is no Array: a server would say of that how long it is, and with a GET it is not.
          class None
            def initialize(body)
              @body = body
              @closed = false
            end

            def each
            end

            def close
              return if @closed
              @closed = true
              Bodies.close(@body)
            end
          end
        end
      end
    end
  end
end
