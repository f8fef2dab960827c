# frozen_string_literal: true

require "rack/utils"

module Hikyaku
  class Server
    class Native
      # A Rack response as the bytes of an HTTP/1.x answer.
      #
      # RFC 9112, sections 4 to 6 and 9.
      class Response
        # Headers that say where a stream begins, and how it is changed: the engine, which knows, writes those of answers that it
        # gives itself.
        OF_ONE_STREAM = %w[mercure-last-event-id last-event-id hikyaku-stream].freeze
        # Statuses without content (RFC 9110, section 6.4.1).
        EMPTY = [204, 304].freeze
        STATUS_LINES = Hash.new do |lines, (version, status)|
          line = "#{version} #{status} #{Rack::Utils::HTTP_STATUS_CODES[status]}\r\n".freeze
          (lines.size < 200) ? lines[[version, status]] = line : line
        end
        # A header's value must end neither the header nor the head.
        FORBIDDEN = /[\r\n\0]/
        private_constant :OF_ONE_STREAM, :EMPTY, :STATUS_LINES, :FORBIDDEN

        def initialize(env, status, headers, keep_alive:)
          @version = (env["SERVER_PROTOCOL"] == "HTTP/1.0") ? "HTTP/1.0" : "HTTP/1.1"
          @status = status.to_i
          @headers = headers
          @head_only = env["REQUEST_METHOD"] == "HEAD"
          @keep_alive = keep_alive && !closing?
        end

        attr_reader :keep_alive
        alias_method :keep_alive?, :keep_alive

        # An answer whose content is known. What HEAD does not ask for is not made.
        def whole(body)
          content = join(body) unless @head_only && !body.is_a?(Array)
          head = lines(@headers)
          head << "connection: close\r\n" if !@keep_alive && !closing? && @version == "HTTP/1.1"
          head << "connection: keep-alive\r\n" if @keep_alive && @version == "HTTP/1.0"
          head << "content-length: #{content.bytesize}\r\n" unless empty? || content.nil? || @headers.key?("content-length")
          [head << "\r\n", (@head_only || empty?) ? "" : content]
        end

        # The head of an answer whose end is the end of the connection.
        def stream
          head = lines(@headers)
          head << "connection: close\r\n" unless closing? || @version == "HTTP/1.0"
          head << "\r\n"
        end

        # What every answer of its kind begins with, for the engine to complete: without the date, a stream's without the
        # cursor and the capability, a publish's without the length; without the empty line.
        def template = lines(@headers.except(*OF_ONE_STREAM, "date", "content-length"))

        private

        def closing? = @headers["connection"].to_s.casecmp?("close")

        def empty? = EMPTY.include?(@status) || @status < 200

        def lines(headers)
          head = +STATUS_LINES[[@version, @status]]
          headers.each do |name, values|
            next if name.start_with?("rack.")
            Array(values).each do |value|
              head << name << ": " << value.to_s << "\r\n" unless FORBIDDEN.match?(value.to_s)
            end
          end
          head.force_encoding(Encoding::BINARY)
        end

        def join(body)
          content = +"".b
          body.each { |part| content << part.b }
          content
        end
      end
    end
  end
end
