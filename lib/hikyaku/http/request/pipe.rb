# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Request
      # What is read and may have nothing yet.
      module Pipe
        # A file always can be read; of what is neither, nobody knows.
        def self.of(body)
          return unless body.respond_to?(:read_nonblock) && body.respond_to?(:to_io)
          io = body.to_io
          io if io.is_a?(IO) && !(io.is_a?(::File) && io.stat.file?)
        rescue
          nil # then reading says why
        end
      end
    end
  end
end
