# frozen_string_literal: true

require_relative "../content_coding"
require_relative "scanner"

module Hikyaku
  module HTTP
    class Proxy
      # A page that is read as it passes: what it contains is told as soon as it is seen.
      class Reading
        HTML = %r{\A\s*(?:text/html|application/xhtml\+xml)\s*(?:;|\z)}i
        CHARSET = /charset\s*=\s*"?([^\s";]+)/i
        MOST = 4_194_304 # bytes, decoded
        private_constant :HTML, :CHARSET, :MOST

        class << self
          # @param answer [Response, Client::Stream]
          # @param url [String] of the page
          # @yieldparam inlines [Array<Scanner::Inline>] what was found
          # @yieldparam frames [Array<String>] see {Scanner#frames}
          # @return [Reading, nil] nil where it is no page, or cannot be read
          def of(answer, url, &found)
            type = answer["content-type"].to_s
            return unless type.match?(HTML)
            decoder = ContentCoding.decoder(answer["content-encoding"].to_s.split(","), max_bytes: MOST)
            new(Scanner.new(base: url, charset: type[CHARSET, 1], policies: policies_of(answer)), decoder, &found)
          rescue ContentCoding::Unsupported
            nil
          end

          private

          # What an Integrity-Policy asks of scripts and style sheets is not read: none is sure to be loaded.
          def policies_of(answer)
            policies = answer.headers.filter_map { |name, value| value if name == "content-security-policy" }
            answer["integrity-policy"] ? [*policies, "script-src 'none'; style-src 'none'"] : policies
          end
        end

        # @param scanner [Scanner]
        # @param decoder [#<<, nil] which undoes the content coding
        def initialize(scanner, decoder, &found)
          @scanner = scanner
          @decoder = decoder
          @found = found
          @left = MOST
        end

        # @param piece [String] the next of the answer's body
        # @return [void]
        def take(piece)
          return if @left.negative? || @scanner.done?
          text = @decoder ? @decoder << piece : piece
          @left -= text.bytesize
          @found.call(@scanner << text, @scanner.frames)
        rescue ContentCoding::Corrupt, ContentCoding::TooLarge
          @left = -1
        end
      end
    end
  end
end
