# frozen_string_literal: true

require_relative "directives"
require_relative "fields"

module Hikyaku
  module HTTP
    class Cache
      # Which requests a stored response is an answer to: what the fields that its Vary names were in the request it came for. RFC 9111, section 4.1.
      #
      # Beyond the RFC, an answer that is not public is for requests with the same identity only ({Inquiry#identity}): a program that uses
      # one client for several users must not have one user's answers given to another.
      class Variance
        MOST_FIELDS = 32
        MAX_BYTES = 4096
        NAME = /\A[!#$%&'*+\-.^_`|~0-9A-Za-z]+\z/
        FIELD_BYTES = 120 # of the objects that hold one
        private_constant :MOST_FIELDS, :MAX_BYTES, :NAME, :FIELD_BYTES

        class << self
          def of(headers, inquiry)
            names = named(headers) or return
            new(names.map { |name| [name, inquiry.selecting(name)] }, (inquiry.identity unless public?(headers)))
          end

          private

          # Of the two the stricter counts: RFC 9111, section 4.2.1.
          def public?(headers)
            directives = Directives.parse(Fields.values(headers, "cache-control"))
            directives.include?("public") && !directives.include?("private")
          end

          def named(headers)
            text = Fields.values(headers, "vary").map(&:b).join(",")
            return if text.bytesize > MAX_BYTES
            names = text.downcase.split(",").map(&:strip).uniq - [""]
            names.sort.freeze if names.size <= MOST_FIELDS && names.all? { |name| name != "*" && name.match?(NAME) }
          end
        end

        def initialize(selecting, identity)
          @selecting = selecting.each(&:freeze).freeze
          @identity = identity
          freeze
        end

        def names = @selecting.map(&:first)

        def matches?(inquiry) = meant_for?(inquiry) && @selecting.all? { |name, value| inquiry.selecting(name) == value }

        def meant_for?(inquiry) = @identity.nil? || inquiry.identity == @identity

        def like?(other) = !other.nil? && names == other.names && @identity == other.identity

        def bytes = @selecting.sum(@identity.to_s.bytesize) { |name, value| name.bytesize + value.to_s.bytesize + FIELD_BYTES }

        def inspect = "#<#{self.class} #{names.join(" ")}>"

        protected

        attr_reader :identity
      end
    end
  end
end
