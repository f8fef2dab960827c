# frozen_string_literal: true

module Hikyaku
  module Codec
    module Rack
      class Compression
        module Bodies
          # The body of an answer to HEAD. It is no Array: a server would say of that how long it is, and with a GET it is not.
          #
          # @api private
          class None
            # @param body [#each] in whose place it stands
            def initialize(body)
              @body = body
              @closed = false
            end

            # @return [void]
            def each
            end

            # @return [void]
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
