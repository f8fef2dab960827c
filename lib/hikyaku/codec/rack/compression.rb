# frozen_string_literal: true

require_relative "../coding"
require_relative "compression/bodies"
require_relative "compression/cache"
require_relative "compression/entity_tags"
require_relative "compression/fields"
require_relative "compression/memory"
require_relative "compression/ranges"
require_relative "compression/types"

module Hikyaku
  module Codec
    # What stands between a Rack application and those who ask it.
    module Rack
      # Middleware that compresses responses, whole ones and those that come in pieces.
      #
      #     use Hikyaku::Codec::Rack::Compression
      #     use Hikyaku::Codec::Rack::Compression, codings: %i[br gzip], min_bytes: 1_000, levels: {gzip: 6}
      #
      # It stands outside of what compares entity tags (Rack::ConditionalGet) and makes them (Rack::ETag). Each coding of a response has a strong entity tag
      # of its own, which is the application's again when it comes back. Bodies are compressed by themselves; what was made of one that comes again is used
      # for bodies that are the same, byte by byte, and for no other.
      #
      # Left alone are responses of other types, those that are encoded or partial already, `Cache-Control: no-transform`, event streams, bodies with `call`
      # alone, and whatever the application says it of: `env["hikyaku.compression"] = false`. A request with the field Range is answered without a coding;
      # one with If-Range and a date, which does not say of which coding, is answered whole where there could be one, for which the application is
      # asked again. A request that refuses even identity is answered without a coding, too: the server may disregard the field (RFC 9110, section 12.5.3),
      # and a client that sent it by mistake can read the answer.
      #
      # RFC 9110, sections 8.4, 8.8.3.3, 12.5.3, 12.5.5 and 13.1.5; RFC 9111, section 5.2.2.6.
      class Compression
        # What an application sets to false in a request's environment, so that the response is not compressed.
        SWITCH = "hikyaku.compression"
        MIN_BYTES = 512
        CACHE_BYTES = 8 * 1024 * 1024
        HEAD = "HEAD"
        private_constant :MIN_BYTES, :CACHE_BYTES, :HEAD

        # @param app [#call]
        # @param codings [Array<Symbol>] the one to choose first where a client likes several; those of zstd, br, gzip that can be used here
        # @param min_bytes [Integer] a body that is known to be smaller is left alone
        # @param cache_bytes [Integer] that the cache of compressed bodies may hold, with the bodies themselves; 0: there is none
        # @param types [Array<String>] media types: "application/json", "text/*", "application/*+json"
        # @param levels [Hash{Symbol => Integer}] of codings; see {Coding::Gzip#compress} and its like
        # @raise [Coding::Unknown, Coding::InvalidLevel]
        # @raise [Unavailable] the gem of a coding is not there
        def initialize(app, codings: nil, min_bytes: MIN_BYTES, cache_bytes: CACHE_BYTES, types: Types::USUAL, levels: {})
          @app = app
          @codings = codings ? codings.map { |name| Coding[name] } : Coding.available
          @min_bytes = min_bytes
          @cache = Cache.new(cache_bytes) if cache_bytes.positive?
          @types = Types.new(types)
          @levels = levels.to_h { |name, level| [Coding[name].name, level] }
          @choices = Memory.new
          # So that what cannot be done is said now, and not with the first response.
          @codings.each { |coding| coding.stream(level: @levels[coding.name]).close }
        end

        # @param env [Hash]
        # @return [Array] status, header fields and body
        def call(env)
          return answer(env) unless Ranges.doubtful?(env)
          whole = Ranges.whole(env)
          status, headers, body = response = answer(env)
          return response unless status.to_i == 206 && of_coded?(env, headers)
          Bodies.close(body)
          answer(whole)
        end

        private

        def answer(env)
          coding = choice(env)
          tags = EntityTags.new(env, coding)
          status, headers, body = response = tags.given { @app.call(env) }
          return response if untouched?(env, status.to_i, headers)
          return [status, tags.unmodified(Fields.varying(headers)), body] if status.to_i == 304
          answer = represented(env, coding, response)
          return answer unless status.to_i == 200 && answer[1]["etag"] == headers["etag"] && tags.known?(headers["etag"])
          known(answer)
        end

        def represented(env, coding, response)
          status, headers, body = response
          return response unless compressible?(status.to_i, headers, body)
          headers = Fields.varying(headers)
          return [status, headers, body] if coding.is_a?(Symbol) || coding.nil? || Fields.partial?(status.to_i, headers)
          headers, body = compressed(coding, headers, body, head: env["REQUEST_METHOD"] == HEAD)
          [status, headers, body]
        end

        def untouched?(env, status, headers) = status < 200 || headers["rack.hijack"] || env[SWITCH] == false

        # Whether this is a part of what others get with a coding.
        def of_coded?(env, headers)
          !untouched?(env, 206, headers) && !Fields.fixed?(headers) && typed?(206, headers)
        end

        # The client has it, by a tag that the application gave itself, and that ends as ours do: so it did not see it.
        def known(answer)
          _, headers, body = answer
          Bodies.close(body)
          [304, Fields.unmodified(headers), []]
        end

        # @return [Coding::Gzip, Coding::Brotli, Coding::Zstandard, :identity, nil]
        def choice(env)
          return :identity if Ranges.asked?(env)
          return :identity if env.key?("HTTP_CACHE_CONTROL") && Fields.transformation_refused?(env["HTTP_CACHE_CONTROL"])
          field = env["HTTP_ACCEPT_ENCODING"] or return :identity
          @choices.fetch(field) { Coding.negotiate(field, @codings) }
        end

        # Whether this response would be compressed for some client.
        def compressible?(status, headers, body)
          status != 204 && status != 205 && body.respond_to?(:each) && typed?(status, headers) && !Fields.fixed?(headers)
        end

        # Several parts have one type together, and each has that of the whole inside: any may be of what others get with a coding.
        def typed?(status, headers)
          type = headers["content-type"]
          @types.include?(type) || (status == 206 && Ranges.several?(type))
        end

        def compressed(coding, headers, body, head:)
          return without_body(coding, headers, body) if head
          bytes, body = Bodies.whole(body)
          return [headers, body] if too_small?(bytes&.bytesize || Fields.length(headers))
          marked = EntityTags.marked(Fields.encoded(headers, coding.name), coding.name)
          return [marked, Bodies::InPieces.new(body, coding, @levels[coding.name])] unless bytes
          coded = closing(body) { whole(coding, headers, bytes) }
          marked["content-length"] = coded.bytesize.to_s
          [marked, [coded]]
        end

        def closing(body)
          yield
        ensure
          Bodies.close(body)
        end

        # What a GET would have, as far as it is known. Where nothing says how long the body would be, as behind Rack::Head, a GET may be left as it is: so are
        # the fields. RFC 9110, section 9.3.2, lets those be left out that only the content decides.
        def without_body(coding, headers, body)
          size = Bodies.size(body) || Fields.length(headers)
          return [headers, size ? body : Bodies::None.new(body)] if size.nil? || too_small?(size)
          [EntityTags.marked(Fields.encoded(headers, coding.name), coding.name), Bodies::None.new(body)]
        end

        def too_small?(size) = !size.nil? && (size < @min_bytes || size.zero?)

        def whole(coding, headers, bytes)
          level = @levels[coding.name]
          return coding.compress(bytes, level: level) if @cache.nil? || Fields.not_to_be_stored?(headers)
          @cache.fetch(bytes, coding.name) { coding.compress(bytes, level: level) }
        end
      end
    end
  end
end
