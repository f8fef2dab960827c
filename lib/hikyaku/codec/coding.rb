# frozen_string_literal: true

require_relative "coding/accept_encoding"
require_relative "coding/brotli"
require_relative "coding/errors"
require_relative "coding/gzip"
require_relative "coding/zstandard"

module Hikyaku
  module Codec
    # The content codings that responses are compressed with: gzip, and br and zstd where the gems brotli and zstd-ruby are there.
    #
    # RFC 9110, section 8.4.1; RFC 1952 (gzip); RFC 7932 (br); RFC 8878 and RFC 9659 (zstd).
    #
    #     gzip = Hikyaku::Codec::Coding[:gzip]
    #     gzip.compress(bytes)                      # whole
    #     stream = gzip.stream                      # in pieces
    #     socket << (stream << piece) << stream.flush
    #     socket << stream.finish
    module Coding
      # In the order in which the server would choose: zstd is quicker than gzip and smaller, br smaller than gzip.
      ALL = [Zstandard.new, Brotli.new, Gzip.new].freeze
      BY_NAME = {"x-gzip" => ALL.last, **ALL.to_h { |coding| [coding.name, coding] }}.freeze
      private_constant :ALL, :BY_NAME

      class << self
        # @param name [Symbol, String] gzip, br or zstd; x-gzip is gzip (RFC 9110, section 8.4.1.3)
        # @return [Gzip, Brotli, Zstandard] which may not be {Gzip#available? available} here
        # @raise [Unknown]
        def [](name)
          BY_NAME.fetch(name.to_s) { raise Unknown, "the content coding #{name.to_s[0, 40].inspect} is not known; gzip, br and zstd are" }
        end

        # @return [Array] those that can be used here, the one that the server would choose first
        def available = ALL.select(&:available?)

        # Chooses by what a request says, and by the order of what is offered where it says the same of several. A request without the field gets
        # identity, although it would allow anything: such clients are the ones that cannot undo a coding.
        #
        # RFC 9110, section 12.5.3.
        #
        # @param header [String, nil] the field Accept-Encoding of a request
        # @param offered [Array<Gzip, Brotli, Zstandard, Symbol, String>] the one to choose first
        # @return [Gzip, Brotli, Zstandard, :identity, nil] nil where even identity is refused, and nothing else that is offered is accepted
        def negotiate(header, offered)
          accepted = AcceptEncoding.parse(header)
          best = offered.map { |coding| coding.respond_to?(:compress) ? coding : self[coding] }.max_by.with_index { |coding, index| [accepted.weight(coding.name), -index] }
          weight = best ? accepted.weight(best.name) : 0
          return best if weight.positive? && weight >= (accepted.identity || 0)
          :identity unless accepted.identity == 0
        end
      end
    end
  end
end
