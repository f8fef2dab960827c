# frozen_string_literal: true

require_relative "../../codec"
require_relative "body"
require_relative "representation/entity_tag"
require_relative "representation/problem"
require_relative "representation/vary"

module Hikyaku
  module Codec
    module Rack
      # Answers with an object as JSON or as MessagePack, as the client asks, in any Rack application:
      #
      #     Hikyaku::Codec::Rack::Representation.represent(items, env)      # plain Rack: the response
      #     helpers Hikyaku::Codec::Rack::Representation                    # Sinatra; then `represent(items, env)` is what a route gives
      #     include Hikyaku::Codec::Rack::Representation                    # Roda; then `r.halt represent(items, env)`
      #
      # RFC 9110, sections 8.8.3, 12.4, 13.1.2, 15.4.5 and 15.5.7.
      module Representation
        READING = %w[GET HEAD].freeze
        HEAD = "HEAD"
        # What a 304 does not have.
        OF_CONTENT = %w[content-type content-length].freeze
        private_constant :READING, :HEAD, :OF_CONTENT

        module_function

        # @param object [Object] what JSON could say; an Enumerator is sent as an array, a piece at a time, and never whole in memory
        # @param env [Hash] the request
        # @param status [Integer] of an answer that has a body
        # @param formats [Array<Symbol, Object>] what is offered, the one first that is sent when the client does not mind; one alone is sent whatever is asked
        #   for, as an address that ends in `.msgpack` wants
        # @param etag [Boolean, String] true: a strong entity tag of the bytes; a String: of this version, of which each format makes a tag of its own, and
        #   nothing is encoded where the client has it; false: none
        # @param headers [Hash{String => String, Array<String>, nil}] more header fields; a field Vary becomes one with what this depends on
        # @param count [Integer, nil] how many an Enumerator has; MessagePack needs it where its `size` does not say
        # @return [Array(Integer, Hash, #each)] a Rack response: this one, 304 without a body, or 406 that names what is offered
        # @raise [UnknownFormat] there is no such format
        # @raise [Unrepresentable] the object has what the format cannot say
        # @raise [WrongCount] nobody says how many an Enumerator has
        def represent(object, env, status: 200, formats: Codec.formats, etag: true, headers: {}, count: nil)
          formats = formats.map { |format| format.is_a?(Symbol) ? Codec[format] : format }
          reading = READING.include?(env["REQUEST_METHOD"])
          head = env["REQUEST_METHOD"] == HEAD
          headers = Vary.lower(headers)
          headers = Vary.add(headers, "accept") if formats.size > 1
          format = (formats.size == 1) ? formats.first : Codec.negotiate(env["HTTP_ACCEPT"], formats)
          return Problem.not_acceptable(formats, headers.slice("vary"), head: head) unless format

          streamed = object.is_a?(Enumerator)
          conditional = reading && status == 200 && etag
          tag = EntityTag.of(format, etag) if conditional && etag.is_a?(String)
          return unmodified(headers, tag) if tag && EntityTag.match?(env["HTTP_IF_NONE_MATCH"], tag)

          bytes = format.dump(object) unless streamed
          if conditional && bytes && tag.nil?
            tag = EntityTag.of(format, bytes)
            return unmodified(headers, tag) if EntityTag.match?(env["HTTP_IF_NONE_MATCH"], tag)
          end
          fields = {"content-type" => format.media_type}
          fields["content-length"] = bytes.bytesize.to_s if bytes
          fields["etag"] = tag if tag
          [status, fields.merge(headers), head ? [] : body_of(format, object, bytes, count)]
        end

        def unmodified(headers, tag) = [304, headers.except(*OF_CONTENT).merge("etag" => tag), []]

        def body_of(format, object, bytes, count) = bytes ? [bytes] : Body.new(format, object, count: count)
        private_class_method :unmodified, :body_of
      end
    end
  end
end
