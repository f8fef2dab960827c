# frozen_string_literal: true

require_relative "../cache/header_fields"

module Hikyaku
  module HTTP
    class Proxy
      # Decides which header fields of a browser's request the proxy sends to an origin. A browser sends 400 bytes of fields with every image, which take longer on
      # a slow uplink than the image.
      #
      # A proxy passes unknown fields on (RFC 9110, section 5.1). The filter omits only the fields in {OMITTED}, which describe the browser and its user, and only in
      # requests for images, styles, scripts and fonts. A request with a field that is neither in {OMITTED} nor in {KEPT}, as scripts add them, or with another Accept
      # than browsers send for that kind, keeps all fields.
      #
      # `Vary` names the fields that a response depends on (section 12.5.5). The first request for each kind of resource therefore carries all fields. The others
      # carry the fields that `Vary` named in any response of that kind, for a day. The filter sends all fields from then on
      #
      # - if `Vary` is "*";
      # - if a request was refused (from 400) or redirected;
      # - if the response is not reusable, so that the server need not send `Vary`: it is private, or has neither a lifetime nor a validator. Scripts and styles may
      #   be made for one user; images and fonts hardly ever are, and are exempt.
      class HeaderFilter
        # Kinds of resources whose requests the filter shortens.
        KINDS = %i[image style script font].freeze
        # Apart from Sec-Fetch-*, they are the same in all requests of a page.
        OMITTED = %w[user-agent accept-language referer upgrade-insecure-requests dnt sec-gpc sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform
          sec-fetch-dest sec-fetch-mode sec-fetch-site sec-fetch-user sec-fetch-storage-access priority].freeze
        KEPT = %w[authorization cookie range if-none-match if-modified-since if-match if-unmodified-since if-range cache-control pragma via save-data].freeze
        # As browsers send it for a kind of resource: it tells nothing but the kind.
        DEFAULT_ACCEPT = {image: %r{\A(?:image/[\w.+-]+|video/\*);?[^"]*\*/\*}, style: %r{\Atext/css,\*/\*;q=0\.1\z}, script: %r{\A\*/\*\z}, font: %r{\A\*/\*\z}}.freeze
        # Their formats are compressed, but for SVG.
        COMPRESSED = %i[image font].freeze
        COMPRESSED_TYPE = %r{\A\s*(?:image/(?:png|jpeg|gif|webp|avif|apng|jxl)|font/woff2?)\s*(?:;|\z)}i
        MAX_NAMES = 20
        MAX_ASKED = 10_000
        REDIRECTS = [301, 302, 303, 307, 308].freeze
        ALL = ["*"].freeze
        CODINGS = "accept-encoding"
        ZERO = /\A0(?:\.0*)?\z/ # a weight: RFC 9110, section 12.4.2
        KNOWN = [*OMITTED, *KEPT, "accept", CODINGS].freeze
        FRAMES = %w[iframe frame embed object fencedframe].freeze
        DESTINATIONS = {"document" => :document, "image" => :image, "style" => :style, "script" => :script, "font" => :font}.merge(FRAMES.to_h { |name| [name, :document] }).freeze
        EXTENSIONS = {"js" => :script, "mjs" => :script, "woff" => :font, "woff2" => :font, "ttf" => :font, "otf" => :font}.freeze
        private_constant :KINDS, :OMITTED, :KEPT, :DEFAULT_ACCEPT, :COMPRESSED, :COMPRESSED_TYPE, :MAX_NAMES, :MAX_ASKED, :REDIRECTS, :ALL, :CODINGS, :ZERO, :KNOWN, :FRAMES,
          :DESTINATIONS, :EXTENSIONS

        class << self
          # The kind of resource that a request is for: by Sec-Fetch-Dest, which Chromium sends to https: origins and to the loopback, or else by Accept, or else by
          # the extension of the URL.
          def kind(address, headers)
            destination = headers.assoc("sec-fetch-dest")&.last
            return DESTINATIONS.fetch(destination, :other) if destination
            case headers.assoc("accept")&.last
            when nil then :other
            when %r{\Atext/html} then :document
            when %r{\Aimage/} then :image
            when %r{\Atext/css} then :style
            else EXTENSIONS.fetch(address.extension, :other)
            end
          end

          # Whether the request is for the document of a frame.
          def frame?(headers) = FRAMES.include?(headers.assoc("sec-fetch-dest")&.last)

          # The fields that the response depends on, in lower case, or "*".
          def vary(response, kind)
            names = response["vary"].to_s.downcase.split(",").map(&:strip).reject(&:empty?)
            (COMPRESSED.include?(kind) || reusable?(response)) ? names : names | ALL
          end

          # The fields that further responses of the kind may depend on. Servers name Accept-Encoding for everything that they send, even for compressed formats.
          def lasting_vary(response, kind)
            names = vary(response, kind)
            (COMPRESSED.include?(kind) && identity?(response) && response["content-type"].to_s.match?(COMPRESSED_TYPE)) ? names - [CODINGS] : names
          end

          # The fields that must be the same in another request for the response to answer it. A response without a content coding suits all requests that accept
          # one: RFC 9110, sections 12.4.3 and 12.5.3.
          def decisive_vary(response, kind, headers)
            names = vary(response, kind)
            (identity?(response) && accepts_identity?(headers)) ? names - [CODINGS] : names
          end

          def varies_by_anything?(response) = response["vary"].to_s.include?("*")

          def refused?(status) = status >= 400 || REDIRECTS.include?(status)

          # Whether the response depends on a field that the request had and the proxy omitted.
          def omitted?(names, headers, sent)
            omitted = (headers - sent).map(&:first)
            names.include?("*") ? omitted.any? : (names & omitted).any?
          end

          def default_accept?(kind, values) = values.all? { |value| DEFAULT_ACCEPT[kind]&.match?(value) }

          def unknown(headers) = headers.map(&:first).uniq - KNOWN

          private

          # The parts of a 206 may have been encoded.
          def identity?(response) = response.status != 206 && response["content-encoding"].nil?

          def accepts_identity?(headers)
            codings = headers.filter_map { |name, value| value.downcase.delete(" \t").split(",") if name == CODINGS }.flatten
            weights = codings.to_h { |text| text.partition(";q=").values_at(0, 2) }
            !weights.fetch("identity", weights["*"]).to_s.match?(ZERO)
          end

          def reusable?(response)
            directives = Cache::Directives.parse([response["cache-control"]].compact)
            return false if directives.include?("no-store") || directives.include?("private")
            response.status == 304 || directives.include?("max-age") || directives.include?("s-maxage") || %w[expires etag last-modified].any? { |name| response[name] }
          end
        end

        def initialize(memory, all: false)
          @memory = memory
          @all = all
          @lock = Mutex.new
          @asked = {}
        end

        def call(origin, kind, headers)
          return headers if @all || !ordinary?(kind, headers)
          needed = known(origin, kind) || (first?(origin, kind) ? ALL : [])
          return headers if needed.include?("*")
          headers.select { |name, _| needed.include?(name) || !omits?(name, kind) }
        end

        # Learns from a response, of whatever status, the fields that the next one may depend on.
        def learn(origin, kind, response)
          return unless KINDS.include?(kind)
          before = known(origin, kind)
          names = (before || []) | self.class.lasting_vary(response, kind)
          names = ALL if names.size > MAX_NAMES
          write(origin, kind, names) unless names == before
        end

        # Sends all fields from now on.
        def send_all(origin, kind) = write(origin, kind, ALL)

        private

        # Whether it is a browser's request for a part of a page, with no field that a script added.
        def ordinary?(kind, headers)
          own = self.class
          KINDS.include?(kind) && own.unknown(headers).empty? && own.default_accept?(kind, headers.filter_map { |name, value| value if name == "accept" })
        end

        def omits?(name, kind) = OMITTED.include?(name) || name == "accept" || (name == CODINGS && COMPRESSED.include?(kind))

        def first?(origin, kind) = @lock.synchronize { @asked.size < MAX_ASKED && !@asked.key?([origin, kind]) && (@asked[[origin, kind]] = true) }

        def known(origin, kind)
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
