# frozen_string_literal: true

require_relative "../../error"
require_relative "../issuer"
require_relative "../type"
require_relative "../types"

module Hikyaku
  class Config
    class GoHub
      # `issuer ID { publisher { jwt KEY [ALG] } subscriber { jwks_uri URL [ALG] } }`
      class IssuerBlock
        ROLES = %w[publisher subscriber].freeze
        # A key in a file, as a placeholder of Caddy.
        FILE = /\A\{file\.(.+)\}\z/
        private_constant :ROLES, :FILE

        class << self
          def key(text) = (match = FILE.match(text)) ? "file:#{match[1]}" : text

          def key_set(directive, url)
            text = url.sub(%r{\Afile://(?:localhost)?/}, "file:/")
            Types.key_set.cast(text)
          rescue Type::Invalid => error
            directive.fail!(error.message)
          end
        end

        attr_reader :issuer
        attr_reader :doubts

        def initialize(directive)
          @doubts = []
          directive.fail!("expected the issuer's identifier, and a block") unless directive.arguments.size == 1 && directive.block
          members = {issuer: directive.arguments.first}
          directive.block.each { |inner| members.merge!(member(inner)) }
          @issuer = Issuer.cast(members)
        rescue Type::Invalid => error
          directive.fail!(error.message)
        end

        private

        def member(inner)
          return role(inner) if ROLES.include?(inner.name) && inner.arguments.empty? && inner.block&.size == 1
          inner.fail!("expected publisher, subscriber or authorization_server") unless inner.name == "authorization_server"
          @doubts << "#{inner.origin}: Hikyaku's metadata name no authorisation servers"
          {}
        end

        def role(inner)
          source = inner.block.first
          value, alg, *rest = source.arguments
          source.fail!("expected one algorithm at most; without one the kind of key says it") if rest.any?
          source.fail!("expected a value") if value.to_s.empty?
          {"#{inner.name}_key": key_of(source, value), "#{inner.name}_alg": (alg unless alg.to_s.empty?)}.compact
        end

        def key_of(source, value)
          case source.name
          when "jwt" then IssuerBlock.key(value)
          when "jwks_uri" then IssuerBlock.key_set(source, value)
          else source.fail!("expected jwt or jwks_uri")
          end
        end
      end
      private_constant :IssuerBlock
    end
  end
end
