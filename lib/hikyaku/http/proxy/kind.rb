# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      # What a browser asks for, as far as it shows: Sec-Fetch-Dest, which Chromium says to https: origins and to this machine alone; else its Accept, and where
      # that says nothing the URL's extension.
      module Kind
        SCRIPTS = %w[js mjs].freeze
        FONTS = %w[woff woff2 ttf otf].freeze
        FRAMES = %w[iframe frame embed object fencedframe].freeze
        DESTINATIONS = {"document" => :document, "image" => :image, "style" => :style, "script" => :script, "font" => :font}.merge(FRAMES.to_h { |name| [name, :document] }).freeze
        private_constant :SCRIPTS, :FONTS, :FRAMES, :DESTINATIONS

        module_function

        def of(address, headers)
          destination = headers.assoc("sec-fetch-dest")&.last
          return DESTINATIONS.fetch(destination, :other) if destination
          case headers.assoc("accept")&.last
          when nil then :other
          when %r{\Atext/html} then :document
          when %r{\Aimage/} then :image
          when %r{\Atext/css} then :style
          else by_extension(address.extension)
          end
        end

        def framed?(headers) = FRAMES.include?(headers.assoc("sec-fetch-dest")&.last)

        def by_extension(extension)
          return :script if SCRIPTS.include?(extension)
          FONTS.include?(extension) ? :font : :other
        end
        private_class_method :by_extension
      end
    end
  end
end
