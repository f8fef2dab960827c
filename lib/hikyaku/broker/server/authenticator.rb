# frozen_string_literal: true

require "openssl"
require_relative "../../config/secret_file"
require_relative "../../support/secret"
require_relative "../../error"
require_relative "../../web/authorization"
require_relative "../permission"

module Hikyaku
  module Broker
    class Server
      # The result of an authentication: permissions and when they expire, or why there are none.
      class Decision
        attr_reader :permissions
        attr_reader :until_ms
        attr_reader :reason

        def self.permit(permissions, until_ms: nil) = new(permissions: permissions, until_ms: until_ms)

        def self.refuse(reason) = new(reason: reason)

        def initialize(permissions: nil, until_ms: nil, reason: nil)
          @permissions = permissions.freeze
          @until_ms = until_ms
          @reason = reason
          freeze
        end

        def permitted? = !permissions.nil?
      end

      # Authenticates clients (docs/protocol.md, section 11): the secret permits everything, a token what its claim `hikyaku` names.
      # Thread-safe. A reason contains nothing of a secret or a token.
      class Authenticator
        # Kinds of credentials in a HELLO.
        SECRET = 1
        TOKEN = 2
        # The right of each member of the claim.
        RIGHTS = {"send" => Permission::SEND, "receive" => Permission::RECEIVE, "manage" => Permission::MANAGE}.freeze
        # The most that a token may permit, by the key that has signed it: a key for subscribers of the hub permits to receive.
        MAX_RIGHTS = {publisher: RIGHTS.keys, subscriber: %w[receive]}.freeze
        MAX_PATTERNS = 1_000
        MAX_PATTERN_BYTES = 256
        MIN_SECRET_BYTES = 16
        WRONG_IDENTITY = "the token is not for this identity: its claim sub names another one, and no pattern of its claim receive covers it"
        private_constant :SECRET, :TOKEN, :RIGHTS, :MAX_RIGHTS, :MAX_PATTERNS, :MAX_PATTERN_BYTES, :MIN_SECRET_BYTES, :WRONG_IDENTITY

        def self.of(config, logger: nil)
          return unless config.broker_authenticates?
          new(secret: secret(config), authorization: authorization(config, logger))
        end

        def self.secret(config)
          path = config.broker_secret_file or return
          where = "#{config.origin(:broker_secret_file)}: #{path}"
          secret = Config::SecretFile.read(path, where: where)
          raise ConfigError, "#{where} holds #{secret.bytesize} bytes; a secret needs #{MIN_SECRET_BYTES} or more" if secret.bytesize < MIN_SECRET_BYTES
          raise ConfigError, "#{where} contains only white space: put a secret there" if Secret.empty?(secret)
          secret
        end

        def self.authorization(config, logger)
          return if config.issuer_list.empty? || config.development_secret?
          Web::Authorization.new(issuers: config.issuer_list, resource_identifier: config.resource_identifier, hub_url: config.hub_url,
            limits: {max_token_bytes: config.max_token_bytes}, logger: logger, weak_secrets: config.dev)
        end
        private_class_method :secret, :authorization

        def initialize(secret: nil, authorization: nil)
          @digest = secret && digest(secret)
          @authorization = authorization
        end

        # It may take as long as fetching the keys of an issuer.
        def call(hello)
          case hello.kind
          when SECRET then secret(hello.credentials)
          when TOKEN then token(hello.credentials, hello.identity.to_s)
          else Decision.refuse("this broker requires credentials: give #{wanted}")
          end
        end

        # Reads the key files again, and fetches the key sets of URLs again.
        def reload = @authorization&.reload

        def inspect = "#<#{self.class.name} #{wanted}>"

        private

        def wanted = [("a secret" if @digest), ("a token" if @authorization)].compact.join(" or ")

        # Digests have equal lengths, so that the time of the comparison does not reveal the length of the secret.
        def secret(given)
          return Decision.refuse("this broker accepts no secret: give #{wanted}") unless @digest
          return Decision.refuse("the secret is wrong") unless OpenSSL.fixed_length_secure_compare(@digest, digest(given))
          Decision.permit([Permission.all])
        end

        def digest(text) = OpenSSL::Digest::SHA256.digest(text)

        def token(text, identity)
          return Decision.refuse("this broker accepts no tokens: give #{wanted}") unless @authorization
          claims, role = verified(text)
          permissions = permissions(claims["hikyaku"], MAX_RIGHTS.fetch(role))
          return Decision.refuse(WRONG_IDENTITY) unless identity.empty? || claims["sub"] == identity || receives?(permissions, identity)
          Decision.permit(permissions, until_ms: (claims.fetch("exp") * 1000).floor)
        rescue InvalidToken => error
          Decision.refuse(error.message)
        end

        # The key of the publishers permits more, so it is tried first.
        def verified(text)
          [@authorization.claims(text, :publisher), :publisher]
        rescue InvalidToken => error
          begin
            [@authorization.claims(text, :subscriber), :subscriber]
          rescue InvalidToken => other
            raise @authorization.publisher_configured? ? error : other
          end
        end

        def permissions(claim, max)
          raise InvalidToken, "the token has no claim hikyaku, or it is not an object" unless claim.is_a?(Hash)
          RIGHTS.slice(*max).flat_map do |name, right|
            patterns(claim.fetch(name, []), name).map { |pattern| Permission.new(pattern, right) }
          end
        end

        def receives?(permissions, identity)
          name = "@#{identity}".b
          permissions.any? { |permission| permission.rights & Permission::RECEIVE != 0 && permission.covers?(name) }
        end

        def patterns(list, name)
          unless list.is_a?(Array) && list.size <= MAX_PATTERNS && list.all? { |pattern| pattern?(pattern) }
            raise InvalidToken, "the claim hikyaku.#{name} is not an array of at most #{MAX_PATTERNS} names, or beginnings of names with * at the end"
          end
          list
        end

        # A `*` elsewhere has no meaning, but looks as if it had one.
        def pattern?(text) = text.is_a?(String) && text.bytesize.between?(1, MAX_PATTERN_BYTES) && !text.chop.include?("*")
      end
    end
  end
end
