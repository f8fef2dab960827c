# frozen_string_literal: true

require_relative "plain"

module Hikyaku
  class Railtie < ::Rails::Railtie
    module CodecGlue
      # What Rails itself answers to errors, to a client that asked for MessagePack: what it would say in JSON, packed. By itself it calls `to_msgpack`, which
      # takes some text for bytes, and says that MessagePack has a charset.
      module Failures
        # In lower case from Rack 3 on.
        VARY = (::Rack::CONTENT_TYPE == "content-type") ? "vary" : "Vary"
        private_constant :VARY

        def self.packed((status, headers, body))
          text = body.join
          bytes = text.empty? ? text : Plain.repack(text)
          [status, headers.merge(::Rack::CONTENT_TYPE => CodecGlue.mime.to_s, ::Rack::CONTENT_LENGTH => bytes.bytesize.to_s), [bytes]]
        end

        def self.depend(request, headers)
          name = headers.keys.find { |key| key.casecmp?(VARY) } || VARY
          headers[name] = Codec::Rack::Representation::Vary.with(headers[name], "accept") unless request.hikyaku_addressed?
        end

        # Before ActionDispatch::PublicExceptions.
        module Public
          def call(env)
            status, headers, body = super
            Failures.depend(ActionDispatch::Request.new(env), headers)
            [status, headers, body]
          end

          private

          def render(status, content_type, body)
            (content_type == CodecGlue.mime) ? Failures.packed(super(status, ::Mime[:json], body)) : super
          end

          def render_format(status, content_type, body)
            (content_type == CodecGlue.mime) ? Failures.packed(super(status, ::Mime[:json], body)) : super
          end
        end

        # Before ActionDispatch::DebugExceptions.
        module Debug
          private

          def render_exception(request, exception, wrapper)
            status, headers, body = super
            Failures.depend(request, headers)
            [status, headers, body]
          end

          def render_for_api_request(content_type, wrapper)
            (content_type == CodecGlue.mime) ? Failures.packed(super(::Mime[:json], wrapper)) : super
          end

          def render(status, body, format)
            (format == CodecGlue.mime) ? Failures.packed(super(status, body, ::Mime[:json])) : super
          end
        end
      end
    end
  end
end
