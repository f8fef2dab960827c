# frozen_string_literal: true

require_relative "../problem"

module Hikyaku
  class Web
    class Subscribe
      # Chooses the format and the coding of a stream, of those that the engine offers, by the client's preferences. A client without
      # preferences gets Server-Sent Events, uncompressed.
      #
      # RFC 9110, sections 12.5.1 and 12.5.3.
      class Negotiation
        VARY = {"vary" => "Accept, Accept-Encoding"}.freeze
        EVENTS = "text/event-stream"
        # The first is what is answered.
        PACKS = %w[application/vnd.msgpack application/msgpack application/x-msgpack application/x-mpac].freeze
        GZIP = %w[gzip x-gzip].freeze
        # What is looked at of a field.
        MAX_BYTES = 4096
        MAX_ELEMENTS = 64
        QUALITY = /\A(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\z/
        PLAIN = %i[events identity].freeze
        NO_FORMAT = "the stream can be had as #{EVENTS} or #{PACKS.first}: Accept admits neither"
        NO_PACKS = "the stream can be had as #{EVENTS}: Accept does not admit it"
        NO_CODING = "the stream can be had as it is, or with gzip where the hub's engine has it: Accept-Encoding admits neither"
        private_constant :VARY, :EVENTS, :PACKS, :GZIP, :MAX_BYTES, :MAX_ELEMENTS, :QUALITY, :PLAIN, :NO_FORMAT, :NO_PACKS, :NO_CODING

        def initialize(hub)
          @packs = hub.offers?(:message_pack, :identity)
          @gzip = hub.offers?(:events, :gzip)
        end

        def call(accept, accept_encoding)
          return PLAIN if accept.nil? && accept_encoding.nil?
          [format(accept), coding(accept_encoding)]
        end

        def self.headers(format, coding)
          headers = {"content-type" => (format == :message_pack) ? PACKS.first : EVENTS}
          headers["content-encoding"] = "gzip" if coding == :gzip
          headers.merge(VARY)
        end

        private

        def format(accept)
          qualities = qualities_of(accept)
          return :events if qualities.empty?
          events = quality(qualities, EVENTS)
          packs = @packs ? PACKS.map { |type| quality(qualities, type) }.max : 0.0
          refuse(@packs ? NO_FORMAT : NO_PACKS) unless events.positive? || packs.positive?
          (packs > events) ? :message_pack : :events
        end

        # The most exact of what applies.
        def quality(qualities, type) = qualities[type] || qualities["#{type[/\A[^\/]+/]}/*"] || qualities["*/*"] || 0.0

        # Without a word about it a client takes what is not coded, and nothing that it has not named.
        def coding(accept_encoding)
          qualities = qualities_of(accept_encoding)
          gzip = @gzip ? GZIP.filter_map { |name| qualities[name] }.max : 0.0
          identity = qualities["identity"] || qualities["*"]
          return :gzip if gzip&.positive? && gzip >= (qualities["identity"] || 0.0)
          return :identity unless identity&.zero?
          return :gzip if @gzip && (gzip || qualities["*"] || 0.0).positive?
          refuse(NO_CODING)
        end

        # By name in lower case, without parameters. What cannot be understood is left out.
        def qualities_of(field)
          qualities = {}
          field.to_s.byteslice(0, MAX_BYTES).b.split(",", MAX_ELEMENTS + 1).first(MAX_ELEMENTS).each do |element|
            name, *parameters = element.split(";").map(&:strip)
            next if name.nil? || name.empty?
            quality = parameters.find { |parameter| parameter.match?(/\Aq\s*=/i) }&.sub(/\Aq\s*=\s*/i, "") || "1"
            next unless QUALITY.match?(quality)
            name = name.downcase
            qualities[name] = [qualities[name] || 0.0, quality.to_f].max
          end
          qualities
        end

        def refuse(detail)
          raise Problem.new(406, detail, headers: VARY)
        end
      end

      private_constant :Negotiation
    end
  end
end
