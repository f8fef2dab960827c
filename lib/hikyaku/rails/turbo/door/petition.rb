# frozen_string_literal: true

require "json"
require_relative "../../../web/problem"

module Hikyaku
  module Turbo
    class Door
      # What a page asks for, read from a request that nobody has to believe: its method, its origin, its type and its size are
      # checked before a name is looked at.
      class Petition
        MAX_NAMES = 100
        MAX_BODY_BYTES = 65_536
        # An object with a list in it.
        MAX_DEPTH = 2
        JSON_TYPE = "application/json"
        private_constant :MAX_BODY_BYTES, :MAX_DEPTH, :JSON_TYPE

        def initialize(request, limit: MAX_NAMES)
          @request = request
          @limit = limit
        end

        def names
          refuse(405, "only POST is understood here", "allow" => "POST") unless @request.get_header("REQUEST_METHOD") == "POST"
          # A form of another site can be neither of these; what JavaScript of another site may send, browsers ask first.
          refuse(403, "this is for pages of the same origin") unless same_origin?
          refuse(415, "the body must be sent as #{JSON_TYPE}", "accept-post" => JSON_TYPE) unless @request.media_type == JSON_TYPE
          listed(parsed(body))
        end

        private

        def refuse(status, detail, headers = {}) = raise(Web::Problem.new(status, detail, headers: headers))

        # Fetch Metadata, section "Sec-Fetch-Site"; browsers without it send Origin with every POST (RFC 6454 section 7). Who sends
        # neither is no browser, and has no cookies but its own.
        def same_origin?
          site = @request.get_header("HTTP_SEC_FETCH_SITE")
          return site == "same-origin" if site
          origin = @request.get_header("HTTP_ORIGIN")
          origin.nil? || origin == @request.base_url
        end

        def body
          body = @request.get_header("rack.input")&.read(MAX_BODY_BYTES + 1) || ""
          refuse(413, "the body is larger than #{MAX_BODY_BYTES} bytes") if body.bytesize > MAX_BODY_BYTES
          # For whoever asks for the parameters after this.
          @request.set_header("RAW_POST_DATA", body)
          body
        end

        def parsed(body)
          text = body.dup.force_encoding(Encoding::UTF_8)
          refuse(400, "the body is not valid UTF-8") unless text.valid_encoding?
          JSON.parse(text, max_nesting: MAX_DEPTH)
        rescue JSON::ParserError
          refuse(400, "the body is not JSON, or is nested too deeply")
        end

        def listed(document)
          names = document["names"] if document.is_a?(Hash)
          unless names.is_a?(Array) && names.any? && names.all?(String)
            refuse(400, %(the body must be {"names": […]}, with the signed names of one stream or more))
          end
          refuse(413, "there are #{names.size} names, more than the #{@limit} that one token can grant") if names.size > @limit
          names
        end
      end
    end
  end
end
