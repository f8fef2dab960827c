# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Request
      # How much a body that is read still has to give.
      module Size
        module_function

        def left(body)
          whole = whole(body)
          return unless whole.is_a?(Integer) && whole >= 0
          left = body.respond_to?(:pos) ? whole - body.pos : whole
          # Files of /proc say that they are empty, and are not.
          left.positive? ? left : (0 if body.respond_to?(:eof?) && body.eof?)
        rescue IOError, SystemCallError
          nil # then reading says why
        end

        # A pipe and a socket have none. A file that is written to has more than the system knows of.
        def whole(body)
          return (body.size if body.stat.file?) if body.is_a?(::File)
          return (body.stat.size if body.stat.file?) if body.is_a?(::IO)
          return body.bytesize if body.respond_to?(:bytesize)
          # What has members and no place in them, as a Struct, counts those.
          body.size if body.respond_to?(:size) && (body.respond_to?(:pos) || !body.is_a?(Enumerable))
        end
        private_class_method :whole
      end
      private_constant :Size
    end
  end
end
