# frozen_string_literal: true

require_relative "plain"

module Hikyaku
  class Railtie < ::Rails::Railtie
    module CodecGlue
      # What is done to a response in JSON or MessagePack when its action is over: what a template rendered is packed, the response says what it depends on,
      # and has a strong entity tag of its own, which may make a 304 of it.
      class Finish
        NAMES = %i[json msgpack].freeze
        ETAG = "ETag"
        VARY = "Vary"
        private_constant :NAMES, :ETAG, :VARY

        def self.packed?(response) = name_of(response) == NAME

        def self.packs?(type) = Codec[NAME].media_types.include?(type.to_s[/\A[^;]*/].strip.downcase)

        def self.name_of(response)
          type = response.media_type&.downcase
          NAMES.find { |name| Codec[name].media_types.include?(type) }
        end

        def initialize(controller, rendered:)
          @controller = controller
          @request = controller.request
          @response = controller.response
          @rendered = rendered&.symbol
        end

        def call
          pack if NAMES.include?(@rendered) && wanted?
          label
          tag
        end

        def label
          @response.charset = false if Finish.packed?(@response)
          return if @request.hikyaku_addressed? || !depends?
          @response.headers[VARY] = Codec::Rack::Representation::Vary.with(@response.headers[VARY], "accept")
        end

        private

        # By the action, or, where it says nothing, by the client.
        def wanted?
          return true if Finish.packed?(@response)
          @request.hikyaku_offered.nil? && Finish.name_of(@response) == :json && @request.format == CodecGlue.mime
        end

        def pack
          @response.content_type = CodecGlue.mime.to_s
          @controller.response_body = Plain.repack(@response.body)
        end

        def depends?
          offered = @request.hikyaku_offered
          return offered.many? && offered.any? { |type| NAMES.include?(type.symbol) } if offered
          return true if @response.status == 406
          return @request.formats.any? { |type| NAMES.include?(type.symbol) } if @response.status == 304
          NAMES.include?(@rendered) && NAMES.include?(Finish.name_of(@response))
        end

        def tag
          format = Finish.name_of(@response)
          return unless NAMES.include?(format) && taggable?
          tag = Codec::Rack::Representation::EntityTag.of(Codec[format], @response.body)
          @response.headers[ETAG] = tag
          return unless Codec::Rack::Representation::EntityTag.match?(@request.if_none_match, tag)
          @controller.status = 304
          @controller.response_body = ""
        end

        # With a date the client asks for both, and `fresh_when` knows of no tag.
        def taggable?
          (@request.get? || @request.head?) && @response.status == 200 && !@response.etag? && !@response.last_modified? && !no_store? &&
            @controller.response_body.respond_to?(:to_ary)
        end

        # Said as Rails wants it, or in the field.
        def no_store? = @response.cache_control[:no_store] || @response.headers["Cache-Control"].to_s.match?(/\bno-store\b/i)
      end
    end
  end
end
