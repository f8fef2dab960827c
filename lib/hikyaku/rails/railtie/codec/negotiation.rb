# frozen_string_literal: true

module Hikyaku
  class Railtie < ::Rails::Railtie
    module CodecGlue
      # What a client accepts, where Rails guesses: it takes any list with `*/*` in it for a browser's, no field at all for a wish for HTML, and a weight
      # of 0 for a small one. That stays as it is for pages, unless MessagePack is named. What is no type is passed over; Rails would refuse the request.
      # Before ActionDispatch::Request.
      #
      # RFC 9110, section 12.5.1.
      module Negotiation
        OFFERED = "hikyaku.codec.offered"
        ACCEPTS = "action_dispatch.request.accepts"
        FORMATS = "action_dispatch.request.formats"
        NAMED = %r{application/(?:vnd\.|x-)?msgpack|application/x-mpac}i
        NAMES = %i[json msgpack].freeze
        # Of a field that has something in it which is no type: as much as Codec::Accept reads.
        MOST_BYTES = 4_096
        MOST_MEMBERS = 64
        # What is offered, as Codec::Accept wants it.
        Type = Struct.new(:mime, :media_types)
        private_constant :OFFERED, :ACCEPTS, :FORMATS, :NAMED, :NAMES, :MOST_BYTES, :MOST_MEMBERS, :Type

        def negotiate_mime(order)
          set_header(OFFERED, order)
          return super if order.empty? || params_readable? || !use_accept_header
          unless hikyaku_named? || order.all? { |type| NAMES.include?(type.symbol) }
            chosen = super
            return chosen unless CodecGlue.mime.equal?(chosen) && hikyaku_refused?
          end
          chosen = Codec.negotiate(get_header("HTTP_ACCEPT").presence, (order - [::Mime::ALL]).map { |type| Type.new(type, hikyaku_names(type)) })
          return chosen.mime if chosen
          order.include?(::Mime::ALL) ? format : nil
        end

        def formats
          known = has_header?(FORMATS)
          super.tap { |found| found.delete(CodecGlue.mime) if !known && found.include?(CodecGlue.mime) && !params_readable? && hikyaku_refused? }
        end

        def accepts
          super
        rescue ActionDispatch::Http::MimeNegotiation::InvalidType
          field = get_header("HTTP_ACCEPT").to_s.b
          raise if field.strip.empty?
          set_header(ACCEPTS, hikyaku_types(field).presence || [::Mime::ALL])
        end

        def hikyaku_offered = get_header(OFFERED)

        def hikyaku_addressed? = !!params_readable?

        private

        # No browser names MessagePack, whatever stands beside it.
        def valid_accept_header = super || hikyaku_named?

        def hikyaku_named? = get_header("HTTP_ACCEPT").to_s.b.match?(NAMED)

        def hikyaku_refused? = Codec::Accept.parse(get_header("HTTP_ACCEPT")).quality(Codec[NAME].media_types).zero?

        def hikyaku_names(type)
          return Codec[type.symbol].media_types if NAMES.include?(type.symbol)
          [type.to_s, *type.send(:synonyms)]
        end

        # One at a time: Rails reads a list as a whole, or not at all.
        def hikyaku_types(field)
          valid = field.byteslice(0, MOST_BYTES).split(",").first(MOST_MEMBERS).map(&:strip).select do |member|
            ::Mime::Type.parse(member)
          rescue ::Mime::Type::InvalidMimeType
            nil
          end
          ::Mime::Type.parse(valid.join(","))
        end
      end
    end
  end
end
