# frozen_string_literal: true

require_relative "../address"

module Hikyaku
  module HTTP
    class Client
      # Whether an answer belongs to the request whose turn it is. HTTP/1.1 has nothing but the order to tell; a server or proxy that mixes answers
      # up gives itself away only where an answer says something of itself: by its status, the field Content-Location, a type that suits another
      # request and not this one, an entity tag that another resource was known by. Answers of the same type without any of these cannot be told apart.
      module ResponseMatcher
        # The types that resources of these names have.
        TYPES = {
          %w[gif png jpg jpeg webp avif ico bmp] => %r{\Aimage/}i, %w[svg] => %r{\Aimage/svg}i, %w[css] => %r{\Atext/css}i,
          %w[js mjs] => %r{\A(?:text|application)/(?:x-)?(?:java|ecma)script}i, %w[html htm] => %r{\A(?:text/html|application/xhtml)}i,
          %w[json] => %r{\Aapplication/(?:[\w.-]+\+)?json}i, %w[woff woff2 ttf otf] => %r{\A(?:font/|application/(?:x-)?font)}i
        }.flat_map { |names, type| names.map { |name| [name, type] } }.to_h.freeze
        private_constant :TYPES

        module_function

        def doubt(exchange, response, others, tags: nil)
          status_doubt(exchange, response) || location_doubt(exchange, response, others) || type_doubt(exchange, response, others) ||
            (tag_doubt(exchange, response, others, tags) if tags)
        end

        def status_doubt(exchange, response)
          return "it is a 304, and nothing was asked about" if response.status == 304 && !exchange.conditional?
          "it is a part, and the whole was asked for" if response.status == 206 && !exchange.request["range"]
        end
        private_class_method :status_doubt

        def location_doubt(exchange, response, others)
          location = response["content-location"] or return
          own = exchange.request.address
          named = Address.parse(location.dup.force_encoding(Encoding::UTF_8), base: own).url
          "its Content-Location is that of another request" if named != own.url && others.any? { |other| other.request.address.url == named }
        rescue InvalidURL
          nil
        end
        private_class_method :location_doubt

        # Only where the type is wrong here and right there: servers call many things by wrong types.
        def type_doubt(exchange, response, others)
          return unless response.status == 200
          expected = TYPES[exchange.request.address.extension] or return
          type = response["content-type"] or return
          return if type.match?(expected)
          "its type is that of another request" if others.any? { |other| TYPES[other.request.address.extension]&.match?(type) }
        end
        private_class_method :type_doubt

        def tag_doubt(exchange, response, others, tags)
          tag = response["etag"] or return
          own = tags.etag(exchange.request.address.url)
          # Some servers make tags of time and size, which many resources share.
          return if own.empty? || own.include?(tag)
          "its entity tag is that of another request" if others.one? { |other| !other.equal?(exchange) && tags.etag(other.request.address.url).include?(tag) }
        end
        private_class_method :tag_doubt
      end

      # The entity tags that resources were known by lately: see {ResponseMatcher.doubt}. All of it while the driver's lock is held.
      class EntityTags
        MOST_URLS = 1_000
        MOST_OF_A_URL = 4
        MAX_BYTES = 128
        NONE = [].freeze
        private_constant :MOST_URLS, :MOST_OF_A_URL, :MAX_BYTES, :NONE

        def initialize
          @known = {}
        end

        def etag(url) = @known.fetch(url, NONE)

        def note(url, tag)
          return if tag.bytesize > MAX_BYTES
          @known[url] = [*((@known.delete(url) || NONE) - [tag]), tag].last(MOST_OF_A_URL)
          @known.shift if @known.size > MOST_URLS
        end
      end
    end
  end
end
