# frozen_string_literal: true

require_relative "fields"

module Hikyaku
  module HTTP
    class Proxy
      module Forwarding
        # A message as the proxy writes it.
        #
        # RFC 9112, sections 6 and 7.1.
        class Message
          LAST_CHUNK = "0\r\n\r\n"
          NOTHING = ""
          private_constant :LAST_CHUNK, :NOTHING

          attr_reader :headers
          attr_reader :framing
          attr_reader :content_length

          def body(piece)
            return NOTHING if piece.empty?
            return piece unless @framing == :chunked
            "#{piece.bytesize.to_s(16)}\r\n".b << piece.b << "\r\n"
          end

          def finish = (@framing == :chunked) ? LAST_CHUNK : NOTHING

          private

          def written(start_line, connection)
            fields = connection ? [*@headers, ["Connection", connection]] : @headers
            "#{start_line}\r\n".b << Fields.write(fields) << "\r\n"
          end

          def framing_fields
            case @framing
            when :length then [["Content-Length", @content_length.to_s]]
            when :chunked then [["Transfer-Encoding", "chunked"]]
            else []
            end
          end

          def via_field(name, minor) = name ? [["Via", "1.#{minor} #{name}"]] : []
        end
      end
    end
  end
end
