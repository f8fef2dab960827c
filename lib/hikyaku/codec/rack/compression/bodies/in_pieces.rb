# frozen_string_literal: true

module Hikyaku
  module Codec
    module Rack
      class Compression
        module Bodies
          # A body that is compressed while it is sent. What its pieces become leaves with each of them, so that a client can decode all that the
          # application has said so far. A file is all there, and is compressed without such stops.
          #
          # When the body raises in the middle, so does this one, and the coding has no end: no client takes the part for the whole.
          class InPieces
            FILE_PIECE = 65_536
            private_constant :FILE_PIECE

            def initialize(body, coding, level)
              @body = body
              @coding = coding
              @level = level
              @closed = false
            end

            def each
              stream = @coding.stream(level: @level)
              if (file = open_file)
                read(file) do |piece|
                  bytes = stream << piece
                  yield bytes unless bytes.empty?
                end
              else
                @body.each { |piece| yield (stream << piece) + stream.flush }
              end
              yield stream.finish
            ensure
              stream&.close
            end

            def close
              return if @closed
              @closed = true
              Bodies.close(@body)
            end

            private

            def read(file)
              while (piece = file.read(FILE_PIECE))
                yield piece
              end
            ensure
              file.close
            end

            def open_file
              path = Bodies.path(@body)
              File.open(path, "rb") if path
            rescue SystemCallError
              nil
            end
          end
        end
      end
    end
  end
end
