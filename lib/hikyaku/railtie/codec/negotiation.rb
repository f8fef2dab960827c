# frozen_string_literal: true

module Hikyaku
  class Railtie < ::Rails::Railtie
    module CodecGlue
      # What a client accepts, where Rails guesses: it takes any list with `*/*` in it for a browser's, no field at all for a wish for HTML, and a weight
      # of 0 for a small one. That stays as it is for pages. Before ActionDispatch::Request.
      #
      # RFC 9110, section 12.5.1.
      module Negotiation
        OFFERED = "hikyaku.codec.offered"
        NAMED = %r{application/(?:vnd\.|x-)?msgpack|application/x-mpac}i
        NAMES = %i[json msgpack].freeze
        private_constant :OFFERED, :NAMED, :NAMES

        # @param order [Array<Mime::Type>] what an action offers
        # @return [Mime::Type, nil] of these; nil when the client accepts none
        def negotiate_mime(order)
          set_header(OFFERED, order)
          return super if order.empty? || params_readable? || !use_accept_header || !order.all? { |type| NAMES.include?(type.symbol) }
          formats = order.map { |type| Codec[type.symbol] }
          chosen = Codec.negotiate(get_header("HTTP_ACCEPT").presence, formats)
          chosen && order[formats.index(chosen)]
        end

        # @return [Array<Mime::Type>, nil] what an action offered when it asked for the format
        def hikyaku_offered = get_header(OFFERED)

        # @return [Boolean] the address says which format, so that the response does not depend on what the client accepts
        def hikyaku_addressed? = !!params_readable?

        private

        # No browser names MessagePack, whatever stands beside it.
        def valid_accept_header = super || get_header("HTTP_ACCEPT").to_s.match?(NAMED)
      end
    end
  end
end
