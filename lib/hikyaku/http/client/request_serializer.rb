# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # Requests as bytes. Each says as little as it may: in a slow uplink it is the requests that take the time.
      module RequestSerializer
        # What is compressed already: to offer codings for it would cost bytes and bring none.
        COMPRESSED = %w[gif png jpg jpeg webp avif ico woff woff2 mp3 mp4 webm ogg zip gz br zst 7z pdf].freeze
        # Whether a body of no bytes is announced: RFC 9110, section 8.6.
        WITH_BODY = %w[POST PUT PATCH].freeze
        private_constant :COMPRESSED, :WITH_BODY

        module_function

        def request(request, settings, route, first:)
          target = route.absolute_form? ? request.address.url : request.address.target
          out = "#{request.method} #{target} HTTP/1.1\r\n"
          out.force_encoding(Encoding::BINARY)
          out << "Host: " << request.address.origin.authority << "\r\n" unless request["host"]
          out << "User-Agent: " << settings.user_agent << "\r\n" if first && settings.user_agent && !request["user-agent"]
          out << "Accept-Encoding: " << settings.codings << "\r\n" if codings?(request, settings)
          credentials = route.absolute_form? && route.credentials
          out << "Proxy-Authorization: " << credentials << "\r\n" if credentials
          request.headers.each { |name, value| out << name << ": " << value << "\r\n" }
          body(out, request)
        end

        def chunk(bytes) = "#{bytes.bytesize.to_s(16)}\r\n".b << bytes << "\r\n"

        def codings?(request, settings)
          settings.codings && !request["accept-encoding"] && !request["range"] && !COMPRESSED.include?(request.address.extension)
        end
        private_class_method :codings?

        def body(out, request)
          case request.body
          when nil then out << (WITH_BODY.include?(request.method) ? "Content-Length: 0\r\n\r\n" : "\r\n")
          when String then out << "Content-Length: #{request.body.bytesize}\r\n\r\n" << request.body
          else out << length(request) << "\r\n"
          end
        end
        private_class_method :body

        # Of a body that is read; among the fields it may stand already.
        def length(request)
          return "Transfer-Encoding: chunked\r\n" unless request.length
          request["content-length"] ? "" : "Content-Length: #{request.length}\r\n"
        end
        private_class_method :length
      end
    end
  end
end
