# frozen_string_literal: true

require_relative "../../support/url"
require_relative "../errors"
require_relative "scanner/charset"
require_relative "scanner/page"
require_relative "scanner/tokenizer"

module Hikyaku
  module HTTP
    class Proxy
      # Finds in a page, as its HTML streams past, what a browser will ask for by itself while it parses it. No I/O.
      #
      #     scanner = Hikyaku::HTTP::Proxy::Scanner.new(base: "http://example.com/dir/page.html", charset: "utf-8")
      #     scanner << bytes   # => [#<Inline image http://example.com/dir/a.png>], what these bytes added
      #
      # Found are images (img, picture, input, background, poster), style sheets, scripts and preloads, as Chromium asks for them at
      # VIEWPORT and one device pixel per CSS pixel, with scripting on. What is not sure to be asked for is left out, for it
      # would be fetched in vain:
      #
      # - what is in comments, scripts, styles, text areas, templates (those of shadow trees, too), noscript, SVG and MathML;
      # - what style sheets ask for, in style elements and attributes, too: it depends on what is matched and shown;
      # - rel=icon: Chromium asks for it after the load, at its leisure; documents of frames; media; what is loaded lazily;
      # - style sheets that are alternate, disabled or for another medium than screens;
      # - images whose choice depends on media features other than the width, and types that are not sure to be supported;
      # - URLs with characters beyond ASCII while the charset is not known, or in the query of a page that is not UTF-8;
      # - what a Content-Security-Policy of the header, or of a meta element before it, is not sure to allow;
      # - everything after such a meta element, or a base, that cannot be read.
      #
      # It takes time in proportion to the bytes and a bounded amount of memory, and raises on no bytes. HTML Standard, sections
      # "Tokenization", "Tree construction" and those of the elements.
      class Scanner
        # What is longer is passed over: one value of an attribute, one tag; in bytes.
        MOST_VALUE = Tokenizer::MOST_VALUE
        MOST_TAG = Tokenizer::MOST_TAG

        def initialize(base:, charset: nil, policies: [], max_urls: 1000)
          url = URL.parse(base.to_s.dup.force_encoding(Encoding::UTF_8))
          raise InvalidURL, "the page to scan has no absolute http or https URL; give its URL as base:" unless url&.plain_http?
          @charset = Charset.new(charset)
          @page = Page.new(url, @charset, max_urls, policies)
          @tokenizer = Tokenizer.new(@page)
        end

        def <<(bytes)
          @charset.sniff(bytes) unless done?
          return [] if done?
          @tokenizer << bytes
          @page.take
        end

        # The documents of frames are a part of the page, which no request for one of them says.
        def frames = @page.take_frames

        def done? = @page.done? || !@charset.ascii?

        def inspect = "#<#{self.class}#{" done" if done?}>"
      end
    end
  end
end
