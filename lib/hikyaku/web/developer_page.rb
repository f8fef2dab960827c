# frozen_string_literal: true

require "json"
require_relative "../error"
require_relative "../version"
require_relative "developer_page/assets"
require_relative "developer_page/caller"
require_relative "developer_page/requests"
require_relative "problem"
require_relative "token_maker"

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
    end
  end
end
