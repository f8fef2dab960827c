# frozen_string_literal: true

require_relative "../../web/subscriptions"
require_relative "../../web/token_maker"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # For controllers; those of IN_VIEWS also for views.
    module Helpers
      IN_VIEWS = %i[hikyaku_url hikyaku_token hikyaku_last_event_id].freeze
      # What browsers keep of a cookie: name, value and attributes (RFC 6265 section 6.1).
      MAX_COOKIE_BYTES = 4096
      private_constant :MAX_COOKIE_BYTES

      # The URL to subscribe at, for `new EventSource(…)`.
      #
      #     hikyaku_url(match: book_url(@book), last_event_id: hikyaku_last_event_id)
      #
      # Mercure draft-08, section "Subscription".
      def hikyaku_url(match: [], match_urlpattern: [], last_event_id: nil)
        settings = Railtie.mount.settings
        base = settings.public_url || (settings.config.path unless settings.remote?) or
          raise ConfigError, "it is not known under which URL browsers find the hub: set config.hikyaku.resource_identifier"
        parameters = {match: match, match_urlpattern: match_urlpattern, last_event_id: last_event_id}.flat_map do |name, values|
          Array(values).map { |value| [name, value.to_s] }
        end
        parameters.empty? ? base : "#{base}?#{URI.encode_www_form(parameters)}"
      end

      # The newest event, to be read before the data that the page shows: with it in the URL nothing is lost between the
      # two.
      def hikyaku_last_event_id = Railtie.mount.newest(request&.env)

      # Tells clients of this resource where its updates come from, in a `Link` header.
      #
      # Mercure draft-08, section "Hub Discovery".
      def hikyaku_discovery(topic = nil, last_event_id: hikyaku_last_event_id, type: nil, content_type: nil)
        last_event_id = nil if last_event_id == "earliest"
        url = hikyaku_url
        url = "#{request.base_url}#{url}" if url.start_with?("/")
        links = [Web::LinkHeader.hub(url, last_event_id: last_event_id, type: type, content_type: content_type)]
        links << %(<#{topic.gsub(/[<>\s]/) { |c| format("%%%02X", c.ord) }}>; rel="self") if topic
        response.headers["Link"] = [response.headers["Link"].presence, *links].compact.join(", ")
      end
      alias_method :mercure_discovery, :hikyaku_discovery

      # An access token for the hub.
      #
      # Mercure draft-08, section "Authorization".
      def hikyaku_token(subscribe: [], publish: [], subject: nil, expires_in: 3600, payload: nil, issued_at: nil)
        subscribe, publish = [subscribe, publish].map { |topics| Array.wrap(topics) }
        subject ||= (hikyaku_subject if respond_to?(:hikyaku_subject, true))
        config = Railtie.mount.settings.config
        Web::TokenMaker.for(config, role: Web::TokenMaker.role_of(publish, subscribe))
          .call(publish: publish, subscribe: subscribe, subject: subject&.to_s, expires_in: expires_in, payload: payload, issued_at: issued_at)
      end

      # The correlation of a request of hikyaku-send.js: publish it as `correlation` of the data. By it the page recognises its own updates,
      # and the answers to its requests.
      def hikyaku_correlation = request.headers["Hikyaku-Correlation"].to_s[/\A\h{32}\z/]

      # Gives the browser a token, in the cookie that it shows the hub.
      #
      # Mercure draft-08, section "Cookie".
      def hikyaku_authorize(domain: nil, expires_in: 3600, **options)
        token = hikyaku_token(expires_in: expires_in, **options)
        cookie = hikyaku_cookie(domain)
        if token.bytesize + cookie[:name].bytesize + 160 > MAX_COOKIE_BYTES
          raise ArgumentError, "the token is too large for a cookie: grant fewer topics, or patterns in their place"
        end
        request.cookie_jar[cookie[:name]] = cookie.except(:name).merge(value: token, expires: Time.now + expires_in)
      end

      # Takes the cookie away, for whoever signs out. Streams that are open stay so: see Hikyaku.disconnect.
      def hikyaku_unauthorize(domain: nil)
        cookie = hikyaku_cookie(domain)
        # Not `delete`, which knows only cookies that came with the request: this one goes to the hub's path alone.
        request.cookie_jar[cookie[:name]] = cookie.except(:name).merge(value: "", expires: Time.at(0))
      end

      private

      def hikyaku_cookie(domain)
        settings = Railtie.mount.settings
        name = settings.config.cookie_name
        {name: name, path: settings.public_path, domain: domain, httponly: true, same_site: :strict,
         secure: name.start_with?("__Secure-") || request.ssl?}.compact
      end
    end
  end
end
