# frozen_string_literal: true

require_relative "field"
require_relative "malformed"

module Hikyaku
  module HTTP
    class Parser
      # How long a body is, by the fields of its head.
      #
      # RFC 9112, section 6.
      class Framing
        # The longest number below 2**64 has 20 digits.
        LENGTH = /\A[0-9]{1,20}\z/n
        BEYOND = 2**64
        private_constant :LENGTH, :BEYOND

        attr_reader :kind
        attr_reader :length

        # What the fields say, whoever sent them; without any there is no body.
        def self.of(headers, minor)
          lengths = Field.values(headers, "content-length")
          codings = Field.members(headers, "transfer-encoding")
          return new(:chunked).tap { check(codings, lengths, minor) } if codings.any?
          return new(:none) if lengths.empty?
          raise Malformed.new(:content_length_repeated) if lengths.size > 1
          raise Malformed.new(:content_length) unless lengths.first.match?(LENGTH) && lengths.first.to_i < BEYOND
          new(:length, lengths.first.to_i)
        end

        # The same of a response. Some servers say identity where there is no coding, as RFC 2616 had it: the body then lasts until the connection is closed.
        def self.of_answer(headers, minor)
          codings = Field.members(headers, "transfer-encoding")
          nothing = minor == 1 && codings.one? && codings.first.casecmp?("identity") && Field.values(headers, "content-length").empty?
          nothing ? new(:none) : of(headers, minor)
        end

        # RFC 9110, section 8.6: a length that is said several times, always the same, in fields or in a list, is said once. Nobody reads it differently, as
        # long as it is passed on so.
        def self.one_length(headers)
          values = Field.values(headers, "content-length")
          return headers unless values.size > 1 || values.first&.include?(",")
          lengths = Field.members(headers, "content-length").uniq
          return headers unless lengths.one?
          said, others = headers.partition { |name, _| name.casecmp?("content-length") }
          others.insert(headers.index(said.first), [said.first.first, lengths.first.freeze].freeze).freeze
        end

        # Section 6.1: what has to do with codings in HTTP/1.0 is faulty. Section 6.3, rule 4: a request that does not end
        # with chunked is malformed; a response would last until the connection is closed, but nobody sends one on purpose.
        def self.check(codings, lengths, minor)
          raise Malformed.new(:framing_conflict) if lengths.any?
          chunked = codings.map { |coding| coding.casecmp?("chunked") }
          usable = minor == 1 && codings.all?(Field::ONE_TOKEN) && chunked.last && chunked.one?
          raise Malformed.new(:transfer_encoding) unless usable
          raise Malformed.new(:transfer_encoding_unknown) if codings.size > 1
        end
        private_class_method :check

        def initialize(kind, length = nil)
          @kind = kind
          @length = length
          freeze
        end

        def body? = @kind == :chunked || @length.to_i > 0
      end
    end
  end
end
