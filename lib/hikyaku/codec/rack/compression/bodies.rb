# frozen_string_literal: true

require_relative "bodies/in_pieces"
require_relative "bodies/none"

module Hikyaku
  module Codec
    module Rack
      class Compression
        # Bodies as Rack has them: Arrays, which are whole, files, and whatever gives pieces when it has them.
        module Bodies
          # A larger file is read piece by piece.
          MOST_FILE_BYTES = 1_048_576
          private_constant :MOST_FILE_BYTES

          class << self
            def whole(body)
              if body.respond_to?(:to_ary) && (pieces = body.to_ary)
                [joined(pieces), pieces]
              else
                [small_file(body), body]
              end
            end

            def size(body) = (body.sum(&:bytesize) if body.is_a?(Array) && !body.empty?)

            def path(body) = (body.to_path if body.respond_to?(:to_path))

            def close(body)
              body.close if body.respond_to?(:close)
            end

            private

            # Pieces of different encodings do not go together.
            def joined(pieces)
              return pieces.first if pieces.size == 1
              pieces.each_with_object(String.new(capacity: pieces.sum(&:bytesize), encoding: Encoding::BINARY)) { |piece, bytes| bytes << piece.b }
            end

            def small_file(body)
              path = path(body)
              File.binread(path) if path && File.size(path) <= MOST_FILE_BYTES
            rescue SystemCallError
              nil # the body itself may know better
            end
          end
        end
        private_constant :Bodies
      end
    end
  end
end
