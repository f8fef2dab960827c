# frozen_string_literal: true

require_relative "content_coding/brotli"
require_relative "content_coding/decoder"
require_relative "content_coding/deflate"
require_relative "content_coding/errors"
require_relative "content_coding/gzip"
require_relative "content_coding/zstandard"

module Hikyaku
  module HTTP
    # Undoes the codings of bodies, piece by piece as a body comes: gzip and deflate, and br and zstd where the gems brotli and zstd-ruby are there.
    #
    # RFC 9110, section 8.4; RFC 7932 (br); RFC 8878 and RFC 9659 (zstd).
    #
    #     decoder = Hikyaku::HTTP::ContentCoding.decoder(["gzip"], max_bytes: 1_000_000)
    #     body << (decoder << piece)      # as often as needed
    #     body << decoder.finish
    #
    # What servers do wrong is tolerated as browsers tolerate it: a body that is labelled gzip and is none is left as it is
    # ({Decoder#mislabelled?}), deflate may lack its wrapping, what stands behind the end of a coding is passed over, and a body of no bytes needs none.
    # Names that nobody gave to a coding of bodies (none, utf-8, aws-chunked) are for the caller to see: {.known?}.
    module ContentCoding
      # One on the other.
      MOST_CODINGS = 3
      STAGES = {"gzip" => Gzip, "x-gzip" => Gzip, "deflate" => Deflate, "br" => Brotli, "zstd" => Zstandard}.freeze
      # Not deflate: whether it has a wrapping is anybody's guess.
      OFFERED = %w[gzip br zstd].freeze
      IDENTITY = ["", "identity"].freeze
      SHOWN = 40
      private_constant :MOST_CODINGS, :STAGES, :OFFERED, :IDENTITY, :SHOWN

      class << self
        def accepted = @accepted ||= OFFERED.select { |name| STAGES.fetch(name).available? }.join(", ").freeze

        def known?(codings) = names(codings).all? { |name| STAGES.key?(name) }

        def decoder(codings, max_bytes:)
          names = names(codings)
          return if names.empty?
          raise Unsupported, "the body has #{names.size} content codings; #{MOST_CODINGS} are undone at most" if names.size > MOST_CODINGS
          Decoder.new(names.reverse.map { |name| stage(name) }, max_bytes: max_bytes)
        end

        private

        def names(codings) = codings.map { |coding| coding.b.strip.downcase } - IDENTITY

        def stage(name)
          known = STAGES[name]
          raise Unsupported, "the content coding #{name[0, SHOWN].inspect} is not known; #{accepted} and deflate are" unless known
          known::LIBRARY.there!(Unsupported, "the content coding #{name}") unless known.available?
          known.new
        end
      end
    end
  end
end
