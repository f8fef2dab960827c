# frozen_string_literal: true

require "json"
require_relative "../error"
require_relative "publisher/endpoint"
require_relative "publisher/errors"
require_relative "publisher/pool"
require_relative "publisher/remote_hub"
require_relative "publisher/retries"
require_relative "publisher/token_source"

module Hikyaku
  # Publishes updates to a hub: any Mercure hub over HTTP, or one in this process. Thread-safe; keeps its connections;
  # may be used in a forked child.
  #
  #     publisher = Hikyaku::Publisher.new("https://example.com/.well-known/mercure",
  #       key: ENV.fetch("MERCURE_KEY"), issuer: "https://shop.example.com")
  #     publisher.publish("https://shop.example.com/books/1", {title: "Dune"})   # => "#mS8ZcQpE3hM"
  #
  # Every request carries an `Idempotency-Key`. A request whose outcome is not known (it was sent, and no answer came)
  # is sent again only to a hub that has shown that it honours the key, as Hikyaku's does; with other hubs it raises
  # OutcomeUnknown, unless `retry_unknown: true` says that publishing twice is better than not at all.
  #
  # Mercure draft-08, sections "Publication" and "Authorization".
  class Publisher
    # What a header field can carry, and what no proxy changes.
    IDEMPOTENCY_KEY = /\A[\x21-\x7e]{1,255}\z/
    private_constant :IDEMPOTENCY_KEY

    # @param target [String, URI, #publish] `http(s)://HOST/PATH`, `unix:SOCKET`, `unix:SOCKET:/PATH` (without a path
    #   it is /.well-known/mercure), or a Hub
    # @param token [String, #call, nil] the access token, or what gives one: it is asked again before the token
    #   expires and after the hub refused it
    # @param key [String, OpenSSL::PKey::PKey, nil] in place of a token: the secret or private key (also as PEM text, or
    #   `file:PATH` or `@PATH`) with which tokens are signed here
    # @param issuer [String] with `key`: `iss`, the name under which the hub knows the key
    # @param audience [String, nil] with `key`: `aud`, the hub's resource identifier; the target's URL when nil (of a
    #   Unix socket, http://localhost and the path), as it is for a hub that was not told otherwise
    # @param alg [String, nil] with `key`: the algorithm; HS256 for a secret
    # @param kid [String, nil] with `key`: the key's id
    # @param subject [String, nil] with `key`: `sub`; the issuer when nil
    # @param lifetime [Numeric] with `key`: seconds that a token lives
    # @param legacy [Boolean] with `key`: also carry the claim that hubs of Mercure 0.x read
    # @param open_timeout [Numeric] seconds to connect
    # @param read_timeout [Numeric] seconds without a byte of the answer
    # @param write_timeout [Numeric] seconds without the hub taking a byte
    # @param keep_alive [Numeric] seconds after which an idle connection is not used again: less than the hub's
    # @param pool_size [Integer] idle connections that are kept
    # @param retries [Integer] further attempts at most
    # @param retry_within [Numeric] seconds after the first attempt in which another may begin; a longer `Retry-After`
    #   raises at once
    # @param retry_unknown [Symbol, Boolean] :auto, true or false: whether a request whose outcome is not known is repeated
    # @param ca_file [String, nil] certificates to trust in place of the system's
    # @param insecure [Boolean] allows a token to travel over plain HTTP to another machine
    # @raise [ConfigError] the settings do not fit together
    def initialize(target, token: nil, key: nil, issuer: "hikyaku", audience: nil, alg: nil, kid: nil, subject: nil, lifetime: 300,
      legacy: false, open_timeout: 5, read_timeout: 10, write_timeout: 10, keep_alive: 4, pool_size: 5, retries: 2, retry_within: 15,
      retry_unknown: :auto, ca_file: nil, insecure: false)
      raise ConfigError, "give token or key, not both" if token && key
      unless [:auto, true, false].include?(retry_unknown)
        raise ConfigError, "retry_unknown must be :auto, true or false, not #{retry_unknown.inspect}"
      end
      if target.respond_to?(:publish)
        @hub = local(target)
      else
        endpoint = Endpoint.new(target, open_timeout: open_timeout, read_timeout: read_timeout, write_timeout: write_timeout, ca_file: ca_file)
        endpoint.confidential! if (token || key) && !insecure
        mint = key && mint(endpoint, key: key, issuer: issuer, audience: audience, alg: alg, kid: kid, subject: subject,
          lifetime: lifetime, legacy: legacy)
        pool = Pool.new(size: pool_size, keep_alive: keep_alive) { endpoint.connection }
        @hub = RemoteHub.new(endpoint, tokens: TokenSource.new(mint || token), pool: pool, retry_unknown: retry_unknown, hint: mint&.hint,
          retries: -> { Retries.new(limit: retries, within: retry_within) })
      end
    end

    # Publishes an update, and returns when the hub has it.
    #
    # @overload publish(topics, data = "", private: false, id: nil, type: nil, retry_after: nil, idempotency_key: nil)
    # @overload publish(topics:, data: "", private: false, id: nil, type: nil, retry_after: nil, idempotency_key: nil)
    # @param topics [String, Array<String>] the canonical topic, then alternates
    # @param data [String, Object] the content; anything but a String becomes JSON
    # @param private [Boolean] only for readers whose token grants one of the topics
    # @param id [String, nil] the event id; the hub makes one when nil
    # @param type [String, nil] the event type
    # @param retry_after [Integer, nil] milliseconds that a client should wait before it reconnects
    # @param idempotency_key [String, nil] up to 255 visible ASCII characters; the same key again is the same publish,
    #   for a hub that honours it
    # @return [String, nil] the event id; nil when a remote hub did not say
    # @raise [Unreachable] nothing was sent
    # @raise [Refused] the hub does not publish it
    # @raise [OutcomeUnknown] it may have been published or not
    # @raise [InvalidTopic, InvalidUpdate, LimitExceeded] a hub in this process does not publish it
    # @raise [ArgumentError] no topic, or not a String
    def publish(topic = nil, content = "", topics: topic, data: content, private: false, id: nil, type: nil, retry_after: nil,
      idempotency_key: nil)
      fields = {topics: list(topics), data: text(data), private: private, id: id && utf8(id), type: type && utf8(type), retry_after: retry_after}
      if idempotency_key && !IDEMPOTENCY_KEY.match?(idempotency_key)
        raise ArgumentError, "idempotency_key must be 1 to 255 visible ASCII characters"
      end
      @hub.publish(fields, idempotency_key)
    end

    # Closes all streams of a subject. Hubs other than Hikyaku's do not know this.
    #
    # @param subject [String] the `sub` of its tokens
    # @param revoke [Boolean] also refuse the tokens that it got before now
    # @return [Integer] how many streams are closed
    # @raise [Unreachable, Refused, OutcomeUnknown] see {#publish}
    # @raise [ArgumentError] no subject
    def disconnect(subject:, revoke: false)
      raise ArgumentError, "name the subject whose streams are to be closed" if subject.to_s.empty?
      @hub.disconnect(utf8(subject), revoke)
    end

    # Closes the connections that are kept. Publishing afterwards opens new ones.
    #
    # @return [void]
    def close
      @hub.close
    end

    # @return [String] without token and key
    def inspect = "#<#{self.class.name} #{@hub}>"

    private

    # Loaded when it is needed: who publishes to another process needs no hub.
    def local(hub)
      require_relative "publisher/local_hub"
      LocalHub.new(hub)
    end

    def mint(endpoint, audience:, **settings)
      require_relative "publisher/token_mint"
      TokenMint.new(audience: audience || endpoint.audience, **settings)
    end

    def list(topics)
      topics = Array(topics).map { |topic| utf8(topic) }
      raise ArgumentError, "name at least one topic" if topics.empty?
      topics
    end

    def text(data) = utf8(data.is_a?(String) ? data : data.to_json)

    # Whether bytes without an encoding are UTF-8 is for the hub to judge.
    def utf8(string)
      raise ArgumentError, "expected a String, not #{string.class}" unless string.is_a?(String)
      return string if string.encoding == Encoding::UTF_8 || string.encoding == Encoding::BINARY
      string.encode(Encoding::UTF_8)
    rescue EncodingError
      raise InvalidUpdate, "the update holds bytes that are not valid #{string.encoding}"
    end
  end
end
