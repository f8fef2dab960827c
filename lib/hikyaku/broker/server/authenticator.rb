# frozen_string_literal: true

require "openssl"
require_relative "../../config/secret_file"
require_relative "../../support/secret"
require_relative "../../error"
require_relative "../../web/authorization"
require_relative "../permission"
require_relative "decision"

module Hikyaku
  module Broker
    class Server
      # Says who may do what: whoever knows the secret everything, whoever has a token what its claim `hikyaku` says
      # (docs/protocol.md, section 11). Thread-safe. No sentence of it holds anything of a secret or a token.
      class Authenticator
        # Kinds of credentials in a HELLO.
        SECRET = 1
        TOKEN = 2
        # What each member of the claim permits.
        RIGHTS = {"send" => Permission::SEND, "receive" => Permission::RECEIVE, "manage" => Permission::MANAGE}.freeze
        # Whose key signed a token says what it may permit at most: who only reads from the hub only receives here.
        MOST = {publisher: RIGHTS.keys, subscriber: %w[receive]}.freeze
        MAX_PATTERNS = 1_000
        MAX_PATTERN_BYTES = 256
        LEAST_SECRET_BYTES = 16
        # A token permits its bearer to be one client, that of its `sub`, and those whose queues it permits to receive from.
        IDENTITY = "the token is not for this identity: its claim sub is another, and no pattern of receive covers it"
        private_constant :SECRET, :TOKEN, :RIGHTS, :MOST, :MAX_PATTERNS, :MAX_PATTERN_BYTES, :LEAST_SECRET_BYTES, :IDENTITY

        def self.of(config, logger: nil)
          return unless config.broker_authenticates?
          new(secret: secret(config), authorization: authorization(config, logger))
        end

        def self.secret(config)
          path = config.broker_secret_file or return
          where = "#{config.origin(:broker_secret_file)}: #{path}"
          secret = Config::SecretFile.read(path, where: where)
          raise ConfigError, "#{where} holds #{secret.bytesize} bytes; a secret has #{LEAST_SECRET_BYTES} at least" if secret.bytesize < LEAST_SECRET_BYTES
          raise ConfigError, "#{where} holds nothing but white space: put a secret there" if Secret.empty?(secret)
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

        # May take as long as fetching an issuer's keys.
        def call(hello)
          case hello.kind
          when SECRET then secret(hello.credentials)
          when TOKEN then token(hello.credentials, hello.identity.to_s)
          else Decision.refuse("this broker asks who you are: give #{wanted}")
          end
        end

        # Reads the files of keys again, and fetches the key sets of URLs again.
        def reload = @authorization&.reload

        def inspect = "#<#{self.class.name} #{wanted}>"

        private

        def wanted = [("a secret" if @digest), ("a token" if @authorization)].compact.join(" or ")

        # Of the same length, whatever was given: comparing tells nothing, not even that.
        def secret(given)
          return Decision.refuse("this broker takes no secret: give #{wanted}") unless @digest
          return Decision.refuse("the secret is wrong") unless OpenSSL.fixed_length_secure_compare(@digest, digest(given))
          Decision.permit([Permission.all])
        end

        def digest(text) = OpenSSL::Digest::SHA256.digest(text)

        def token(text, identity)
          return Decision.refuse("this broker takes no tokens: give #{wanted}") unless @authorization
          claims, role = verified(text)
          permissions = permissions(claims["hikyaku"], MOST.fetch(role))
          return Decision.refuse(IDENTITY) unless identity.empty? || claims["sub"] == identity || receives?(permissions, identity)
          Decision.permit(permissions, until_ms: (claims.fetch("exp") * 1000).floor)
        rescue InvalidToken => error
          Decision.refuse(error.message)
        end

        # The publishers' key permits most, so it is tried first.
        def verified(text)
          [@authorization.claims(text, :publisher), :publisher]
        rescue InvalidToken => error
          begin
            [@authorization.claims(text, :subscriber), :subscriber]
          rescue InvalidToken => other
            raise @authorization.publisher_configured? ? error : other
          end
        end

        def permissions(claim, most)
          raise InvalidToken, "the token has no claim hikyaku, or it is not an object" unless claim.is_a?(Hash)
          RIGHTS.slice(*most).flat_map do |name, right|
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

        # A `*` elsewhere would be taken for something that it is not.
        def pattern?(text) = text.is_a?(String) && text.bytesize.between?(1, MAX_PATTERN_BYTES) && !text.chop.include?("*")
      end
    end
  end
end
