# frozen_string_literal: true

require_relative "finish"
require_relative "plain"
require_relative "renderer"

module Hikyaku
  class Railtie < ::Rails::Railtie
    module CodecGlue
      # In every controller.
      module Controller
        extend ActiveSupport::Concern

        # Of responses that may not be kept.
        NO_STORE = {no_store: true}.freeze
        # What Rails puts among the options of `render`, and puts there again.
        OF_TEMPLATES = %i[prefixes template layout callback].freeze
        private_constant :NO_STORE, :OF_TEMPLATES

        included do
          include ActionController::MimeResponds

          # What a controller says itself of these errors comes later, and counts.
          rescue_from ActionController::UnknownFormat, with: :hikyaku_not_acceptable
          rescue_from ActionDispatch::Http::Parameters::ParseError, with: :hikyaku_unreadable
          # `fresh_when` makes a tag of a record; each representation needs its own.
          etag { response.media_type || request.formats.join(",") }
        end

        # In a response that was negotiated to be MessagePack, `render json:` packs, unless it names another type.
        def render(*arguments, &block)
          options = arguments.last
          if options.is_a?(Hash) && options.key?(:json) && Finish.packed?(response) && (options[:content_type].nil? || Finish.packs?(options[:content_type]))
            arguments = [*arguments[0...-1], options.except(:json).merge(NAME => options[:json])]
          end
          super
        end

        # A response that is negotiated says so at once: one that is streamed has its header fields before the action is over.
        def content_type=(type)
          super
          Finish.new(self, rendered: nil).label
        end

        private

        # Answers with an object as the client asks.
        def hikyaku_represent(object, formats: %i[json msgpack], count: nil, **options)
          respond_to(*formats)
          return render(json: object.is_a?(String) ? hikyaku_quoted(object) : object, **options) unless object.is_a?(Enumerator)
          self.status = options[:status] if options[:status]
          headers["Location"] = url_for(options[:location]) if options[:location]
          self.response_body = Codec::Rack::Body.new(Codec[Finish.packed?(response) ? NAME : :json], object, count: count, &hikyaku_rows(options))
          # Rails would have Rack::ETag go through it all, before it is sent.
          response.stream.singleton_class.undef_method(:to_ary) if response.stream.respond_to?(:to_ary)
        end

        # What `render json:` sends as it is. Bytes, too, are what they are in MessagePack, and no text in JSON.
        def hikyaku_quoted(text) = Finish.packed?(response) ? Codec[NAME].dump(text) : Plain.quoted(text)

        # `render json:`, which writes a String as it is.
        def _render_with_renderer_json(object, options)
          super((Renderer.slow?(self) && Plain.text(object, options)) || object, options)
        end

        # `render msgpack:`
        def hikyaku_packed(object, options)
          self.content_type = CodecGlue.mime if media_type.nil?
          @_hikyaku_packed = true
          return Plain.pack(object, options) if Plain.packed?(object) || Renderer.rails?(self)
          Plain.repack(hikyaku_text(object, options.except(*OF_TEMPLATES)))
        end

        # What `render json:` makes, from the beginning. A serialiser may say of the response that it is JSON.
        def hikyaku_text(object, options)
          type = response.content_type
          render_to_string({**options, json: object})
        ensure
          self.content_type = type
        end

        # What is made of each row that is streamed: what `render json:` would make of it alone.
        def hikyaku_rows(options)
          if Renderer.rails?(self)
            _normalize_options(options)
            ->(item) { Plain.given(item, options) }
          else
            options = options.except(:status, :location, :content_type)
            ->(item) { item.is_a?(String) ? item : Plain.parse(hikyaku_text(item, options)) }
          end
        end

        def process_action(*)
          super
          Finish.new(self, rendered: @_hikyaku_packed ? nil : rendered_format).call unless response.committed?
        end

        def hikyaku_not_acceptable(exception)
          offered = (request.hikyaku_offered || hikyaku_templates).filter_map(&:symbol)
          raise exception unless offered.intersect?([NAME, :json])
          hikyaku_problem(*Codec::Rack::Representation::Problem.not_acceptable(offered.map { |name| Offer.new(::Mime[name].to_s) }))
        end

        # A body of ours that cannot be read; others are the application's affair.
        def hikyaku_unreadable(exception)
          raise exception unless exception.cause.is_a?(Error)
          hikyaku_problem(*Codec::Rack::Representation::Problem.response(400, exception.cause.message))
        end

        def hikyaku_problem(status, fields, body)
          self.status = status
          self.content_type = fields["content-type"]
          response.charset = false
          response.cache_control.replace(NO_STORE)
          self.response_body = body
        end

        # What the templates of this action offer, where it does not say it itself. One for JSON is one for MessagePack.
        def hikyaku_templates
          types = ::Mime::SET.select { |type| type.symbol && template_exists?(action_name.to_s, _prefixes, formats: [type.symbol]) }
          types.include?(::Mime[:json]) ? types | [CodecGlue.mime] : types
        end
      end

      Offer = Struct.new(:media_type)
      private_constant :Offer
    end
  end
end
