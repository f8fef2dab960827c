# frozen_string_literal: true

require "ipaddr"
require "json"
require "openssl"
require "uri"
require_relative "../error"
require_relative "../version"
require_relative "problem"
require_relative "token_maker"
require_relative "../support/clock"
require_relative "../hub/event"

module Hikyaku
  class Web
    # The developer page: a fixed table of files, the page's settings, and the three helpers that only a hub in
    # developer mode offers (make a token, explain a token, keep a token in the hub's cookie).
    #
    # Everything the page does besides goes through the hub's own protocol, with the same rights as any other client.
    class DeveloperPage
      SECURITY = {
        # No inline script, no other host, and no string ever parsed as markup.
        "content-security-policy" => "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " \
          "object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        "x-content-type-options" => "nosniff",
        "referrer-policy" => "no-referrer",
        "cross-origin-opener-policy" => "same-origin",
        "cross-origin-resource-policy" => "same-origin"
      }.freeze
      MAX_BODY_BYTES = 65_536
      ACTIONS = %w[token explain cookie].freeze
      private_constant :SECURITY, :ACTIONS

      def initialize(config:, authorization:, mint: TokenMaker.mint(config))
        @config = config
        @authorization = authorization
        @mint = mint
        @assets = Assets.new(extra: {"config.json" => JSON.generate(settings)})
        @caller = Caller.new(hosts: known_hosts)
      end

      def call(path, env)
        status, headers, body = answer(path, env)
        [status, headers, (env["REQUEST_METHOD"] == "HEAD") ? [] : body]
      end

      private

      def answer(path, env)
        # Relative, so that it holds wherever the hub is mounted.
        return respond(308, {"location" => "ui/"}) if path.empty?

        name = path.delete_prefix("/")
        return act(name, env) if ACTIONS.include?(name)

        asset = @assets[name]
        raise Problem.new(404, "the page has no file of this name") unless asset

        permit(%w[GET HEAD], env)
        serve(asset, env)
      rescue Problem => problem
        problem.response(SECURITY)
      end

      def settings
        {
          version: VERSION, hub_path: hub_path, hub_url: @config.hub_url, legacy: @config.legacy, anonymous: @config.anonymous,
          subscriptions: @config.subscriptions, cookie_name: @config.cookie_name, heartbeat_seconds: @config.heartbeat,
          mint: @mint && {publisher: signs_for?(:publisher), subscriber: signs_for?(:subscriber), together: signs_for?(nil)}
        }
      end

      def signs_for?(role)
        TokenMaker.for(@config, role: role)
        true
      rescue ConfigError
        false
      end

      def hub_path = @config.hub_url[%r{\A[^:]+://[^/?#]*([^?#]*)}, 1]

      def known_hosts
        listen_host = @config.listen.to_s[/\A(?!unix:)\[?([^\]]+?)\]?:\d+\z/, 1]
        [Caller.host_of(@config.hub_url), listen_host].compact
      end

      def serve(asset, env)
        headers = {"etag" => asset.etag, "cache-control" => "no-cache"}
        return respond(304, headers) if fresh?(env["HTTP_IF_NONE_MATCH"], asset.etag)

        headers["content-type"] = asset.type
        headers["content-length"] = asset.bytes.bytesize.to_s
        respond(200, headers, asset.bytes)
      end

      def fresh?(if_none_match, etag)
        if_none_match.to_s.split(",").any? { |tag| tag.strip.delete_prefix("W/") == etag || tag.strip == "*" }
      end

      def act(name, env)
        permit(%w[POST], env)
        stranger = @caller.refusal(env)
        raise Problem.new(403, stranger) if stranger

        send(name, Requests.parse(env, max_bytes: MAX_BODY_BYTES))
      end

      def permit(methods, env)
        return if methods.include?(env["REQUEST_METHOD"])

        raise Problem.new(405, "only #{methods.join(" and ")} is understood here", headers: {"allow" => methods.join(", ")})
      end

      def token(body)
        raise Problem.new(501, "the hub holds no key that can sign: give it a secret or a private key") unless @mint

        json({token: @mint.call(**Requests.grants(body))})
      rescue ConfigError => error
        raise Problem.new(400, error.message)
      end

      def explain(body)
        token, role = Requests.question(body)
        json(@authorization.explain(token, role))
      end

      # A script cannot set an HttpOnly cookie, and section "Cookie" asks for one: the hub sets it.
      def cookie(body)
        token = Requests.cookie(body)
        attributes = "Path=#{hub_path}; HttpOnly; SameSite=Strict"
        attributes += "; Secure" if @config.cookie_name.start_with?("__") || @config.hub_url.start_with?("https:")
        attributes += "; Max-Age=0" unless token
        respond(204, {"set-cookie" => "#{@config.cookie_name}=#{token}; #{attributes}", "cache-control" => "no-store"})
      end

      def json(object)
        respond(200, {"content-type" => "application/json", "cache-control" => "no-store"}, JSON.generate(object))
      end

      def respond(status, headers, body = nil) = [status, SECURITY.merge(headers), body ? [body] : []]

      # The page's files, read once at boot into a fixed table. A name is looked up, never joined to a folder:
      # nothing outside the table can be asked for.
      class Assets
        FOLDER = File.expand_path("developer_page/page", __dir__)
        TYPES = {
          ".html" => "text/html; charset=utf-8", ".css" => "text/css; charset=utf-8",
          ".js" => "text/javascript; charset=utf-8", ".svg" => "image/svg+xml", ".json" => "application/json"
        }.freeze
        private_constant :FOLDER, :TYPES

        Asset = Struct.new(:bytes, :type, :etag, keyword_init: true)

        def initialize(extra: {})
          files = Dir.children(FOLDER).sort.to_h { |name| [name, File.binread(File.join(FOLDER, name))] }
          @table = files.merge(extra).to_h { |name, bytes| [name, asset(name, bytes)] }
          @table[""] = @table.fetch("index.html")
          @table.freeze
        end

        def [](name) = @table[name]

        def names = @table.keys

        private

        def asset(name, bytes)
          etag = %("#{OpenSSL::Digest::SHA256.hexdigest(bytes)[0, 20]}")
          Asset.new(bytes: bytes.freeze, type: TYPES.fetch(File.extname(name)), etag: etag).freeze
        end
      end
      private_constant :Assets

      # Who may use what only the page may use: the page itself, and programs that are no browser.
      #
      # A browser says where a request comes from (Origin, Sec-Fetch-Site), so another site is refused. A site whose
      # name was pointed at this machine (DNS rebinding) is "the same origin" to the browser, so a browser must also
      # have come by an address, by localhost, or by a name that this hub was given.
      class Caller
        def self.host_of(url)
          URI.parse(url.to_s).host&.delete_prefix("[")&.delete_suffix("]")&.downcase
        rescue URI::Error
          nil
        end

        def initialize(hosts:)
          @hosts = hosts.map(&:downcase).freeze
        end

        def refusal(env)
          origin = env["HTTP_ORIGIN"]
          site = env["HTTP_SEC_FETCH_SITE"]
          return unless origin || site
          return "only the hub's own page may ask this, and the request comes from another site" unless own?(origin, site, env)

          host = Caller.host_of("http://#{env["HTTP_HOST"]}")
          return if host && (@hosts.include?(host) || local?(host) || address?(host))

          "the hub does not know the host name #{env["HTTP_HOST"].to_s[0, 100].inspect}: open the page by address, or start " \
            "the hub with the name in --resource-identifier"
        end

        private

        def own?(origin, site, env)
          return false if site && !%w[same-origin none].include?(site)

          # The scheme is not compared: behind a proxy that ends TLS the hub sees http.
          origin.nil? || origin.sub(%r{\Ahttps?://}, "").downcase == env["HTTP_HOST"].to_s.downcase
        end

        def local?(host) = host == "localhost" || host.end_with?(".localhost")

        def address?(host)
          IPAddr.new(host)
          true
        rescue IPAddr::Error
          false
        end
      end
      private_constant :Caller

      # Reads and checks the JSON that the page's helpers are called with. Raises {Problem}.
      module Requests
        MAX_TOPICS = 100
        MAX_SECONDS = 30 * 86_400
        # What browsers keep of one cookie, less room for its name and attributes.
        MAX_COOKIE_BYTES = 3_800
        MATCHER_KEYS = %w[match match_type].freeze
        private_constant :MAX_TOPICS, :MAX_SECONDS, :MAX_COOKIE_BYTES, :MATCHER_KEYS

        module_function

        def parse(env, max_bytes:)
          type = env["CONTENT_TYPE"].to_s[/\A[^;\s]+/].to_s.downcase
          raise Problem.new(415, "send a JSON object, with Content-Type: application/json") unless type == "application/json"

          bytes = env["rack.input"]&.read(max_bytes + 1).to_s
          raise Problem.new(413, "the body is larger than #{max_bytes} bytes") if bytes.bytesize > max_bytes

          object(bytes.dup.force_encoding(Encoding::UTF_8))
        end

        def grants(body)
          {
            publish: matchers(body["publish"], "publish"), subscribe: matchers(body["subscribe"], "subscribe"),
            payload: payload(body["payload"]), expires_in: seconds(body.fetch("expires_in", 3600)), legacy: body["legacy"] == true
          }
        end

        def question(body)
          token = body["token"]
          raise Problem.new(400, "token must be a string") unless token.is_a?(String)
          raise Problem.new(400, 'role must be "publisher" or "subscriber"') unless %w[publisher subscriber].include?(body["role"])

          [token, body["role"].to_sym]
        end

        def cookie(body)
          token = body["token"]
          return if token.nil?
          unless token.is_a?(String) && token.match?(%r{\A[A-Za-z0-9._~+/-]+=*\z})
            raise Problem.new(400, "token must be null or a token: letters, digits and -._~+/ only")
          end
          raise Problem.new(400, "browsers keep no cookie of this size: the token is longer than #{MAX_COOKIE_BYTES} bytes") if token.bytesize > MAX_COOKIE_BYTES

          token
        end

        def object(text)
          raise Problem.new(400, "the body is not UTF-8") unless text.valid_encoding?

          parsed = JSON.parse(text)
          raise Problem.new(400, "the body must be a JSON object") unless parsed.is_a?(Hash)

          parsed
        rescue JSON::ParserError
          raise Problem.new(400, "the body is not JSON")
        end

        def matchers(list, name)
          list = [] if list.nil?
          raise Problem.new(400, "#{name} must be an array of topics or matchers") unless list.is_a?(Array)
          raise Problem.new(400, "#{name} has more than #{MAX_TOPICS} entries") if list.size > MAX_TOPICS

          list.map { |entry| matcher(entry, name) }
        end

        def matcher(entry, name)
          entry = {"match" => entry} if entry.is_a?(String)
          valid = entry.is_a?(Hash) && (entry.keys - MATCHER_KEYS).empty? && entry["match"].is_a?(String) &&
            (entry["match_type"].nil? || entry["match_type"].is_a?(String))
          raise Problem.new(400, %(#{name}: each entry is a string or {"match", "match_type"})) unless valid

          {"match" => entry["match"], "match_type" => entry["match_type"] || "exact"}
        end

        def payload(value)
          return value if value.nil? || value.is_a?(Hash)

          raise Problem.new(400, "payload must be a JSON object")
        end

        def seconds(value)
          return value if value.is_a?(Integer) && value.between?(1, MAX_SECONDS)

          raise Problem.new(400, "expires_in must be a whole number of seconds, 1 to #{MAX_SECONDS}")
        end
        private_class_method :object, :matchers, :matcher, :payload, :seconds
      end
      private_constant :Requests
    end

    # In developer mode, the figures of the hub, and of a broker in its process, told every second to whoever subscribes to exactly `{hub path}/figures`.
    # They are not updates: nothing of them is kept, and no other matcher selects them.
    class LiveMetrics
      include Support::Clock

      def initialize(hub, broker: -> {})
        @hub = hub
        @broker = broker
        @topic = "#{hub.hub_path}/figures"
        @started = @at = now
        @last = hub.stats
      end

      attr_reader :topic

      # Tells the figures, if anybody listens.
      def push
        figures = measure
        @hub.notify(@topic, Hub::Event.transient(data: JSON.generate(figures.merge(broker: @broker.call).compact))) if @hub.watched?(@topic)
      end

      def measure
        now = self.now
        stats = @hub.stats
        seconds = [now - @at, 0.001].max
        rates = %i[publishes deliveries].to_h { |name| [:"#{name}_per_second", ((stats[name] - @last[name]) / seconds).round(1)] }
        @at = now
        @last = stats
        stats.merge(rates, uptime_seconds: (now - @started).round, memory_bytes: memory)
      end

      private

      # Resident memory, where the system tells it the Linux way.
      def memory
        File.read("/proc/self/statm").split[1].to_i * 4096
      rescue SystemCallError
        0
      end
    end
  end
end
