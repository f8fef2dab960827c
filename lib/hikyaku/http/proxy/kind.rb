# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      # What a browser asks for, as far as it shows: its Accept, and where that says nothing the URL's extension. (Sec-Fetch-Dest is not sent to http: origins.)
      module Kind
        SCRIPTS = %w[js mjs].freeze
        FONTS = %w[woff woff2 ttf otf].freeze
        private_constant :SCRIPTS, :FONTS

        module_function

        # @param address [Address]
        # @param headers [Array<Array(String, String)>] names in lower case
        # @return [Symbol] :document, :image, :style, :script, :font or :other
        def of(address, headers)
          case headers.assoc("accept")&.last
          when nil then :other
          when %r{\Atext/html} then :document
          when %r{\Aimage/} then :image
          when %r{\Atext/css} then :style
          else by_extension(address.extension)
          end
        end

        def by_extension(extension)
          return :script if SCRIPTS.include?(extension)
          FONTS.include?(extension) ? :font : :other
        end
        private_class_method :by_extension
      end
    end
  end
end
