# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # Media types by which a browser decides whether to ask for something.
        module Types
          # MIME Sniffing Standard, "JavaScript MIME type".
          SCRIPT = (%w[application/ecmascript application/javascript application/x-ecmascript application/x-javascript text/ecmascript text/javascript text/jscript
            text/livescript text/x-ecmascript text/x-javascript] + (0..5).map { |minor| "text/javascript1.#{minor}" }).freeze
          IMAGE = %w[image/apng image/avif image/bmp image/gif image/jpeg image/jpg image/png image/svg+xml image/webp image/x-icon image/vnd.microsoft.icon].freeze
          FONT = %w[font/collection font/otf font/sfnt font/ttf font/woff font/woff2 application/font-woff application/font-woff2].freeze
          STYLE = %w[text/css].freeze

          module_function

          def essence(type) = type[/\A[^;\t\n\f\r ]*/]

          def script(attributes)
            type = attributes.word("type")
            return :module if type == "module"
            type = "text/#{attributes.word("language")}" if !attributes.key?("type") && !attributes.word("language").empty?
            :classic if SCRIPT.include?(type) || (type.empty? && attributes["type"].to_s.empty?)
          end
        end
      end
    end
  end
end
