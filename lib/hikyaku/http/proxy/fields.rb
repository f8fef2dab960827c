# frozen_string_literal: true

require_relative "../cache/directives"

module Hikyaku
  module HTTP
    class Proxy
      # Which header fields of a browser's go on to an origin. In a slow uplink the 400 bytes that a browser says with every image take longer than the image.
      #
      # RFC 9110, section 5.1: a field that is not known is passed on. So everything goes on but what is named here: what browsers say of themselves and of
      # where they are, in requests for the images, styles, scripts and fonts of a page. Only what they say by themselves is left out: a request with any
      # field that is neither named here nor in {KEPT}, as scripts add them, or with another Accept than browsers say of that kind, carries everything.
      #
      # On what an answer depends its `Vary` says (section 12.5.5). So the first request for each kind of resource carries everything that the browser said. The
      # others, at once and for a day, carry what Vary named in any answer of that kind. Everything is said, from then on, where Vary is "*"; where a request was
      # refused (from 400) or led elsewhere; and where Vary need not be said, as nobody else may be given the answer (no-store, private), or nobody again
      # (neither is said for how long, nor is there a validator): so are scripts and styles that are made for who asks. Of images and fonts this is not asked,
      # as those are hardly ever, and each would be asked for twice.
      class Fields
        # Kinds of resources of which something is left out.
        KINDS = %i[image style script font].freeze
        # Who the browser is, where its user is, and what it does: the same in all requests of a page, but for Sec-Fetch-*.
        LEFT_OUT = %w[user-agent accept-language referer upgrade-insecure-requests dnt sec-gpc sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform
          sec-fetch-dest sec-fetch-mode sec-fetch-site sec-fetch-user sec-fetch-storage-access priority].freeze
        # What always goes on, and does not keep others from being left out.
        KEPT = %w[authorization cookie range if-none-match if-modified-since if-match if-unmodified-since if-range cache-control pragma via save-data].freeze
        # As browsers say it of a kind of resource: what says this says nothing but the kind.
        OWN_ACCEPT = {image: %r{\A(?:image/[\w.+-]+|video/\*);?[^"]*\*/\*}, style: %r{\Atext/css,\*/\*;q=0\.1\z}, script: %r{\A\*/\*\z}, font: %r{\A\*/\*\z}}.freeze
        # These are compressed already.
        COMPRESSED = %i[image font].freeze
        # Most of them: SVG is an image, too.
        COMPRESSED_TYPE = %r{\A\s*(?:image/(?:png|jpeg|gif|webp|avif|apng|jxl)|font/woff2?)\s*(?:;|\z)}i
        MOST_NAMES = 20
        MOST_ASKED = 10_000
        LED_ELSEWHERE = [301, 302, 303, 307, 308].freeze
        EVERYTHING = ["*"].freeze
        CODINGS = "accept-encoding"
        NOT_AT_ALL = /\A0(?:\.0*)?\z/ # RFC 9110, section 12.4.2
        KNOWN = [*LEFT_OUT, *KEPT, "accept", CODINGS].freeze
        private_constant :KINDS, :LEFT_OUT, :KEPT, :OWN_ACCEPT, :COMPRESSED, :COMPRESSED_TYPE, :MOST_NAMES, :MOST_ASKED, :LED_ELSEWHERE, :EVERYTHING, :CODINGS, :NOT_AT_ALL, :KNOWN

        class << self
          def needed(answer, kind)
            names = answer["vary"].to_s.downcase.split(",").map(&:strip).reject(&:empty?)
            (COMPRESSED.include?(kind) || reusable?(answer)) ? names : names | EVERYTHING
          end

          # Of what is compressed already, and came without a content coding, Vary names Accept-Encoding as of everything that the server sends.
          def lasting(answer, kind)
            names = needed(answer, kind)
            (COMPRESSED.include?(kind) && plain?(answer) && answer["content-type"].to_s.match?(COMPRESSED_TYPE)) ? names - [CODINGS] : names
          end

          # Who asks with other fields may be answered with what came, where these are the same. What has no content coding is for everybody who does not
          # refuse that, whatever was said of codings: RFC 9110, sections 12.4.3 and 12.5.3.
          def decisive(answer, kind, said)
            names = needed(answer, kind)
            (plain?(answer) && takes_plain?(said)) ? names - [CODINGS] : names
          end

          def any?(answer) = answer["vary"].to_s.include?("*")

          def refusal?(status) = status >= 400 || LED_ELSEWHERE.include?(status)

          def missed?(names, said, sent)
            left_out = (said - sent).map(&:first)
            names.include?("*") ? left_out.any? : (names & left_out).any?
          end

          def own_accept?(kind, values) = values.all? { |value| OWN_ACCEPT[kind]&.match?(value) }

          def unknown(headers) = headers.map(&:first).uniq - KNOWN

          private

          # A part may be joined with others, which were encoded.
          def plain?(answer) = answer.status != 206 && answer["content-encoding"].nil?

          # The coding's own weight counts, and else that of all others.
          def takes_plain?(said)
            codings = said.filter_map { |name, value| value.downcase.delete(" \t").split(",") if name == CODINGS }.flatten
            weights = codings.to_h { |text| text.partition(";q=").values_at(0, 2) }
            !weights.fetch("identity", weights["*"]).to_s.match?(NOT_AT_ALL)
          end

          # Of what nobody else may be given, or nobody twice, Vary has no meaning.
          def reusable?(answer)
            said = Cache::Directives.parse([answer["cache-control"]].compact)
            return false if said.include?("no-store") || said.include?("private")
            answer.status == 304 || said.include?("max-age") || said.include?("s-maxage") || %w[expires etag last-modified].any? { |name| answer[name] }
          end
        end

        def initialize(memory, all: false)
          @memory = memory
          @all = all
          @lock = Mutex.new
          @asked = {}
        end

        def for(origin, kind, headers)
          return headers if @all || !ordinary?(kind, headers)
          needed = varied(origin, kind) || (first?(origin, kind) ? EVERYTHING : [])
          return headers if needed.include?("*")
          headers.select { |name, _| needed.include?(name) || !left_out?(name, kind) }
        end

        # An answer came, of whatever status: on what one depends, the next may.
        def answered(origin, kind, names)
          return unless KINDS.include?(kind)
          known = varied(origin, kind)
          all = (known || []) | names
          all = EVERYTHING if all.size > MOST_NAMES
          write(origin, kind, all) unless all == known
        end

        # It refused a request that carried less.
        def refused(origin, kind) = write(origin, kind, EVERYTHING)

        private

        # Whether a browser says this of what is in a page, and no script added to it.
        def ordinary?(kind, headers)
          own = self.class
          KINDS.include?(kind) && own.unknown(headers).empty? && own.own_accept?(kind, headers.filter_map { |name, value| value if name == "accept" })
        end

        def left_out?(name, kind) = LEFT_OUT.include?(name) || name == "accept" || (name == CODINGS && COMPRESSED.include?(kind))

        # Of a server that nothing is known of, in this process.
        def first?(origin, kind) = @lock.synchronize { @asked.size < MOST_ASKED && !@asked.key?([origin, kind]) && (@asked[[origin, kind]] = true) }

        def varied(origin, kind)
          names = @memory.read(key(origin))["kinds"]
          found = names[kind.to_s] if names.is_a?(Hash)
          found if found.is_a?(Array) && found.all?(String)
        end

        def write(origin, kind, names)
          kinds = @memory.read(key(origin))["kinds"]
          @memory.write(key(origin), {"kinds" => (kinds.is_a?(Hash) ? kinds : {}).merge(kind.to_s => names)})
        end

        def key(origin) = "fields of #{origin}"
      end
    end
  end
end
