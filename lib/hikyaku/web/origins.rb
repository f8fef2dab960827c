# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  class Web
    # Which web pages may use the hub: the CORS protocol (Mercure draft-08, section "Subscription"), and the check of
    # the source of a request that changes something with a cookie (section "Security Considerations").
    #
    # Origins are compared whole. Those on the list may send cookies; "*" lets any page in, without. The origin "null"
    # is what every sandboxed page says, so it can never be on a list.
    class Origins
      SAFE_METHODS = %w[GET HEAD OPTIONS QUERY].freeze
      ALLOW_METHODS = "GET, HEAD, QUERY, POST, DELETE"
      ALLOW_HEADERS = "authorization, last-event-id, cache-control, content-type, idempotency-key, hikyaku-stream"
      EXPOSE_HEADERS = "link, mercure-last-event-id, last-event-id, www-authenticate, retry-after, hikyaku-stream"
      # Two hours: the longest that a browser keeps a preflight answer.
      MAX_AGE = "7200"
      ANY = "*"
      # Apps in a web view and browser extensions have schemes of their own.
      ORIGIN = %r{\A([a-z][a-z0-9+.-]*)://(\[[0-9a-f:.]+\]|[^\s/?#@:\\\[\]*]+)(?::(\d{1,5}))?\z}i
      DEFAULT_PORT = {"http" => "80", "https" => "443"}.freeze

      # The origin of a URL, as browsers write it.
      def self.of(url)
        match = ORIGIN.match(url.to_s.b[%r{\A[^/?#\\]+//[^/?#\\]*}].to_s) or return
        scheme = match[1].downcase
        port = match[3] unless match[3] == DEFAULT_PORT[scheme]
        "#{scheme}://#{match[2].downcase}#{":#{port}" if port}"
      end

      def initialize(cors_origins: [], publish_origins: [], hub_url: nil)
        @cors = list("cors_origins", cors_origins)
        @any_cors = @cors.delete(ANY) ? true : false
        @publish = list("publish_origins", publish_origins)
        @any_publish = @publish.delete(ANY) ? true : false
        own = Origins.of(hub_url) and LocalNames.of(own).each { |origin| @publish[origin] = true }
        [@cors, @publish, self].each(&:freeze)
      end

      # The CORS headers of an answer.
      def headers(env)
        return {} if !@any_cors && @cors.empty?
        allow = allowance(env["HTTP_ORIGIN"])
        return allow unless allow.key?("access-control-allow-origin")
        allow.merge("access-control-expose-headers" => EXPOSE_HEADERS)
      end

      # The answer to OPTIONS, whether it is a preflight or not.
      def preflight(env)
        headers = {"allow" => "#{ALLOW_METHODS}, OPTIONS"}
        return [204, headers, []] if !@any_cors && @cors.empty?
        headers.update(allowance(env["HTTP_ORIGIN"]))
        if headers.key?("access-control-allow-origin")
          headers.update("access-control-allow-methods" => ALLOW_METHODS, "access-control-allow-headers" => ALLOW_HEADERS,
            "access-control-max-age" => MAX_AGE)
        end
        [204, headers, []]
      end

      # Whether a request that changes something may do so with the token of a cookie, which the browser sends along
      # whatever page asks for it. Origin says where the request comes from, or else Referer; without either the answer
      # is no. Only for requests whose token came from a cookie. The answer to a no is 400 with `invalid_request`: it is
      # about how the token is presented.
      def publish_allowed?(env)
        return true if SAFE_METHODS.include?(env["REQUEST_METHOD"])
        origin, referer = %w[HTTP_ORIGIN HTTP_REFERER].map { |name| env[name] unless env[name].to_s.empty? }
        return false unless origin || referer
        return true if @any_publish
        origin ||= Origins.of(referer)
        !origin.nil? && @publish.key?(origin)
      end

      private

      def list(setting, origins)
        Array(origins).to_h { |origin| [(origin == ANY) ? ANY : normal(setting, origin), true] }
      end

      def normal(setting, origin)
        raise ConfigError, "#{setting}: the origin null is anybody's and cannot be trusted" if origin == "null"
        found = Origins.of(origin) if origin.is_a?(String) && origin.match?(%r{\A[^/]+//[^/]+/?\z})
        found or raise ConfigError, "#{setting}: #{origin.inspect} is not an origin like https://app.example.com, nor * for any"
      end

      def allowance(origin)
        return (@cors.empty? ? {} : {"vary" => "origin"}).merge(any) unless origin && @cors.key?(origin)
        {"vary" => "origin", "access-control-allow-origin" => origin, "access-control-allow-credentials" => "true"}
      end

      def any = @any_cors ? {"access-control-allow-origin" => ANY} : {}

      private_constant :SAFE_METHODS, :ALLOW_METHODS, :ALLOW_HEADERS, :EXPOSE_HEADERS, :MAX_AGE, :ANY, :ORIGIN, :DEFAULT_PORT
    end

    # The names under which a machine reaches itself: what is said of one of them holds for all.
    module LocalNames
      ALL = ["localhost", "127.0.0.1", "[::1]"].freeze
      HOST = %r{\A([a-z][a-z0-9+.-]*://)#{Regexp.union(ALL)}(?=[:/?]|\z)}i
      private_constant :ALL, :HOST

      module_function

      def of(url)
        prefix = url[HOST, 1] or return [url]
        ALL.map { |name| url.sub(HOST) { prefix + name } }
      end
    end
  end
end
