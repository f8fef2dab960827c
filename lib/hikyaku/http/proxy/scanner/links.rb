# frozen_string_literal: true

require_relative "media"
require_relative "srcset"
require_relative "types"

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # What a link element asks for.
        #
        # HTML Standard, section "Link types".
        module Links
          # What a preload is for, as one kind, and the types that are sure to be supported.
          PRELOADS = {"image" => [:image, Types::IMAGE], "style" => [:style, Types::STYLE], "script" => [:script, Types::SCRIPT], "font" => [:font, Types::FONT],
                      "fetch" => [:other, nil]}.freeze
          MODULES = ["", "script"].freeze
          private_constant :PRELOADS, :MODULES

          class << self
            def read(attributes)
              rel = attributes.words("rel")
              if rel.include?("stylesheet") then style(attributes, rel)
              elsif rel.include?("preload") then preload(attributes)
              elsif rel.include?("modulepreload") then script_module(attributes)
              end
            end

            private

            # One for a screen is asked for whether it fits the window or not: it may, later.
            def style(attributes, rel)
              return if rel.include?("alternate") || attributes.key?("disabled") || Media.match(attributes.text("media")) == false
              type = Types.essence(attributes.word("type"))
              {reference: attributes.text("href"), kind: :style} if type.empty? || type == "text/css"
            end

            def preload(attributes)
              as = attributes.word("as")
              kind, types = PRELOADS[as]
              return unless kind && fits?(attributes, types)
              reference = attributes.text("href")
              if as == "image" && attributes.key?("imagesrcset")
                reference = Srcset.choose(attributes["imagesrcset"], sizes: attributes["imagesizes"], src: reference)
              end
              {reference: reference, kind: kind, as: as}
            end

            def fits?(attributes, types)
              return false unless Media.match(attributes.text("media"), width: Srcset::VIEWPORT)
              type = Types.essence(attributes.word("type"))
              type.empty? || types.nil? || types.include?(type)
            end

            def script_module(attributes)
              return unless MODULES.include?(attributes.word("as")) && Media.match(attributes.text("media"), width: Srcset::VIEWPORT)
              {reference: attributes.text("href"), kind: :script, script_module: true}
            end
          end
        end
      end
    end
  end
end
