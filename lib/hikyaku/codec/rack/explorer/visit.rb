# frozen_string_literal: true

require "stringio"

module Hikyaku
  module Codec
    module Rack
      class Explorer
        # One response of the application, asked for in this process.
        class Visit
          # What is remembered of the request in which the page was asked for, or must not be said of another.
          FORGOTTEN = /\A(?:rack\.(?:request\.|hijack|input|response_finished|early_hints|url_map)|
            action_dispatch\.(?:request|cookies|original_path)|action_controller\.|puma\.|
            HTTP_(?:ACCEPT(?:_ENCODING)?|IF_\w+|RANGE|CONTENT_\w+|TRANSFER_ENCODING|SEC_FETCH_\w+|ORIGIN|REFERER)\z|CONTENT_|ORIGINAL_|sinatra\.|roda\.)/x
          EVENTS = %r{\Atext/event-stream}i
          private_constant :FORGOTTEN, :EVENTS

          attr_reader :status
          attr_reader :fields
          attr_reader :body
          attr_reader :note

          def initialize(app, env, target, accept:, max_bytes:, mark:, rooted:)
            @max_bytes = max_bytes
            @fields = {}
            @body = String.new(encoding: Encoding::BINARY)
            ask(app, environment(env, target, accept, rooted).merge(mark => true))
          end

          def whole? = @note.nil?

          def type = @fields["content-type"].to_s

          private

          def ask(app, env)
            @status, fields, body = app.call(env)
            @fields = fields.to_h { |name, value| [name.to_s.downcase, Array(value).join("\n").tr("\n", ",")] }
            read(body)
          rescue => error
            @note = "The application raised #{error.class}: #{error.message.to_s[0, 1000]}"
          ensure
            body.close if body.respond_to?(:close)
          end

          def read(body)
            return @note = "This is a stream of events, which does not end." if EVENTS.match?(type)
            return @note = "The application writes this body to the connection itself." unless body.respond_to?(:each)
            body.each do |piece|
              @body << piece.b
              break if @body.bytesize > @max_bytes
            end
            return if @body.bytesize <= @max_bytes
            @body = @body.byteslice(0, @max_bytes)
            @note = "This is the beginning: the body is longer than #{@max_bytes} bytes."
          end

          def environment(env, target, accept, rooted)
            path, query = target.split("?", 2)
            place = {
              "SCRIPT_NAME" => rooted ? env["SCRIPT_NAME"].to_s : "", "PATH_INFO" => path, "QUERY_STRING" => query.to_s,
              "REQUEST_PATH" => path, "REQUEST_URI" => target
            }
            said = {"REQUEST_METHOD" => "GET", "HTTP_ACCEPT" => accept, "rack.input" => StringIO.new("".b), "hikyaku.compression" => false}
            env.reject { |name, _| FORGOTTEN.match?(name) }.merge(place, said)
          end
        end
        private_constant :Visit
      end
    end
  end
end
