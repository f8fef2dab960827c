# frozen_string_literal: true

require "json"
require_relative "../hub/matcher"

module Hikyaku
  class Web
    # The OAuth 2.0 Protected Resource Metadata of the hub (RFC 9728; Mercure draft-08, section "Protected Resource
    # Metadata"): what a client must know to get a token, at a path that it derives from the hub's URL.
    class Metadata
      WELL_KNOWN = "/.well-known/oauth-protected-resource"
      DETAIL_TYPES = ["https://mercure.rocks/authorization-detail"].freeze
      # Public, without credentials, changed by a new configuration only.
      HEADERS = {
        "content-type" => "application/json", "cache-control" => "public, max-age=3600",
        "access-control-allow-origin" => "*"
      }.freeze

      attr_reader :path, :url, :document

      def initialize(config, authorization_servers: [])
        identifier = config.resource_identifier || config.hub_url
        @url = well_known(identifier)
        @path = path_of(@url || well_known(config.hub_url))
        @document = {
          "resource" => identifier,
          "authorization_servers" => authorization_servers.empty? ? nil : authorization_servers,
          "authorization_details_types_supported" => DETAIL_TYPES,
          "bearer_methods_supported" => ["header"],
          "mercure_cookie" => config.cookie_name,
          "mercure_matcher_types_supported" => Hub::Matcher::TYPES,
          "mercure_subscriptions" => config.subscriptions ? true : nil
        }.compact.freeze
        @body = JSON.generate(@document).freeze
        freeze
      end

      def to_json(*) = @body

      def response = [200, HEADERS.dup, [@body]]

      private

      # RFC 9728 section 3: between host and path; a path that is only a slash goes.
      def well_known(identifier)
        match = %r{\A(https?://[^/?#]+)(/[^?#]*)?(\?[^#]*)?}i.match(identifier) or return
        "#{match[1]}#{WELL_KNOWN}#{match[2] unless match[2] == "/"}#{match[3]}"
      end

      def path_of(url) = url[%r{\Ahttps?://[^/]+([^?]*)}i, 1]

      private_constant :WELL_KNOWN, :DETAIL_TYPES, :HEADERS
    end
  end
end
