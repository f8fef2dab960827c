# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # Media types that a browser checks before it requests a resource.
        module MediaTypes
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

        # Evaluates media queries for a screen, by types and width. For other features the result is nil.
        #
        # Media Queries Level 4, section 2.
        module MediaQueries
          QUERY = /\A(?:(not|only) )?([a-z][a-z-]*)(?: and (.+))?\z/
          FEATURE = /\A\( ?(min|max)-width ?: ?([0-9]*\.?[0-9]+)(px|em|rem) ?\)\z/
          NO_TYPES = %w[and not only or layer].freeze
          PIXELS = {"px" => 1.0, "em" => 16.0, "rem" => 16.0}.freeze
          private_constant :QUERY, :FEATURE, :NO_TYPES, :PIXELS

          class << self
            def match(list, width: nil)
              list = normal(list)
              return true if list.empty?
              any(list.split(",", -1).map { |query| of(query.strip, width) })
            end

            def normal(text) = text.downcase(:ascii).gsub(/[\t\n\f\r ]+/, " ").delete_prefix(" ").delete_suffix(" ")

            private

            def of(query, width)
              return conditions(query, width) if query.start_with?("(")
              modifier, type, rest = QUERY.match(query)&.captures
              return if type.nil? || NO_TYPES.include?(type)
              fits = all([type == "all" || type == "screen", rest ? conditions(rest, width) : true])
              (modifier == "not" && !fits.nil?) ? !fits : fits
            end

            def conditions(text, width) = all(text.split(" and ", -1).map { |feature| feature(feature, width) })

            def feature(text, width)
              bound, number, unit = FEATURE.match(text)&.captures
              return unless bound && width
              pixels = number.to_f * PIXELS.fetch(unit)
              (bound == "min") ? width >= pixels : width <= pixels
            end

            def any(results)
              return true if results.include?(true)
              results.include?(nil) ? nil : false
            end

            def all(results)
              return false if results.include?(false)
              results.include?(nil) ? nil : true
            end
          end
        end

        # Chooses from several images as Chromium does, at one device pixel per CSS pixel.
        #
        # HTML Standard, sections "Parsing a srcset attribute", "Parsing a sizes attribute", "Selecting an image source".
        module Srcset
          VIEWPORT = 1280 # CSS pixels
          URL = /\G[\t\n\f\r ,]*([^\t\n\f\r ]+)/n
          # Up to a comma outside of brackets.
          DESCRIPTORS = /\G((?:[^,(]++|\([^)]*+\)?)*+),?/n
          WIDTH = /\A[0-9]+w\z/n
          DENSITY = /\A[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?x\z/n
          HEIGHT = /\A[0-9]+h\z/n
          LENGTH = /\A([0-9]*\.?[0-9]+)(px|vw|em|rem)\z/
          PIXELS = {"px" => 1.0, "vw" => VIEWPORT / 100.0, "em" => 16.0, "rem" => 16.0}.freeze
          private_constant :URL, :DESCRIPTORS, :WIDTH, :DENSITY, :HEIGHT, :LENGTH, :PIXELS

          # An image; the unit of `number` is :width or :density.
          Candidate = Struct.new(:url, :number, :unit)
          private_constant :Candidate

          class << self
            def choose(srcset, sizes: nil, src: "")
              candidates = parse(srcset)
              widths = candidates.any? { |candidate| candidate.unit == :width }
              size = width(sizes.to_s) if widths
              found = candidates.map { |candidate| [candidate.url, (candidate.unit == :width) ? candidate.number / size : candidate.number] }
              found << [src, 1.0] unless src.empty? || widths
              enough = found.select { |_, density| density >= 1 }
              (enough.min_by(&:last) || found.max_by(&:last))&.first.to_s
            end

            private

            def parse(srcset)
              bytes = srcset.b
              at = 0
              candidates = []
              while (match = URL.match(bytes, at))
                at = match.end(0)
                url = match[1]
                descriptors = ""
                unless url.end_with?(",")
                  match = DESCRIPTORS.match(bytes, at)
                  at = match.end(0)
                  descriptors = match[1]
                end
                candidates << candidate(url[/\A.*[^,]/mn], descriptors.split(/[\t\n\f\r ]+/n).reject(&:empty?))
              end
              candidates.compact
            end

            # Nil if it is malformed.
            def candidate(url, descriptors)
              return unless url
              url = url.force_encoding(Encoding::UTF_8)
              return Candidate.new(url, 1.0, :density) if descriptors.empty?
              descriptors = descriptors.grep_v(HEIGHT) if descriptors.size == 2 && descriptors.grep(WIDTH).any?
              return if descriptors.size != 1
              number = descriptors.first.to_f
              case descriptors.first
              when WIDTH then Candidate.new(url, number, :width) if number > 0
              when DENSITY then Candidate.new(url, number, :density)
              end
            end

            # The first size whose condition holds, in pixels.
            def width(sizes)
              sizes = MediaQueries.normal(sizes)
              return VIEWPORT.to_f if sizes.empty?
              sizes.split(",").each do |entry|
                condition, _, length = entry.strip.rpartition(" ")
                number, unit = LENGTH.match(length)&.captures
                throw :unsure if number.nil? || !(condition.empty? || condition.start_with?("("))
                holds = MediaQueries.match(condition, width: VIEWPORT)
                throw :unsure if holds.nil?
                return number.to_f * PIXELS.fetch(unit) if holds
              end
              VIEWPORT.to_f
            end
          end
        end

        # The subresources of link elements.
        #
        # HTML Standard, section "Link types".
        module Links
          # Values of `as`, with the kind of resource and the supported types.
          PRELOADS = {"image" => [:image, MediaTypes::IMAGE], "style" => [:style, MediaTypes::STYLE], "script" => [:script, MediaTypes::SCRIPT], "font" => [:font, MediaTypes::FONT],
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

            # A browser requests a style sheet for screens even if it does not match the window now.
            def style(attributes, rel)
              return if rel.include?("alternate") || attributes.key?("disabled") || MediaQueries.match(attributes.text("media")) == false
              type = MediaTypes.essence(attributes.word("type"))
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
              return false unless MediaQueries.match(attributes.text("media"), width: Srcset::VIEWPORT)
              type = MediaTypes.essence(attributes.word("type"))
              type.empty? || types.nil? || types.include?(type)
            end

            def script_module(attributes)
              return unless MODULES.include?(attributes.word("as")) && MediaQueries.match(attributes.text("media"), width: Srcset::VIEWPORT)
              {reference: attributes.text("href"), kind: :script, script_module: true}
            end
          end
        end

        # The subresources of a page's elements, in their order.
        class Elements
          RULES = {
            "img" => :image, "image" => :image, "input" => :input, "link" => :link, "script" => :script, "picture" => :picture, "source" => :source,
            "video" => :video, "body" => :body, "table" => :table, "tbody" => :cell, "thead" => :cell, "tfoot" => :cell, "tr" => :cell, "td" => :cell, "th" => :cell
          }.freeze
          # Elements whose attribute crossorigin applies to the subresource.
          CORS = %w[img image link script].freeze
          # Elements whose attribute nonce a policy checks.
          NONCED = %w[link script].freeze
          private_constant :RULES, :CORS, :NONCED

          def initialize
            @tables = 0
            @picture = nil
            @body = false
          end

          def start(name, attributes)
            rule = RULES[name] or return
            wanted = send(rule, attributes) or return
            wanted.merge(crossorigin: CORS.include?(name) ? crossorigin(attributes, wanted) : nil, referrer_policy: referrer_policy(attributes),
              nonce: NONCED.include?(name) ? attributes["nonce"] : nil)
          end

          def finish(name)
            @picture = nil if name == "picture"
            @tables -= 1 if name == "table" && @tables > 0
          end

          private

          def crossorigin(attributes, wanted)
            return (attributes.word("crossorigin") == "use-credentials") ? :credentials : :anonymous if attributes.key?("crossorigin")
            :anonymous if wanted[:script_module]
          end

          def referrer_policy(attributes) = Scanner.referrer_policy(attributes.word("referrerpolicy"))

          # The sources of a picture precede its image, which ends the picture here.
          def image(attributes)
            source = @picture
            @picture = nil
            throw :unsure if source == :unsure
            return if attributes.word("loading") == "lazy"
            return {reference: source, kind: :image} if source && source != :none
            srcset = attributes["srcset"] or return {reference: attributes.text("src"), kind: :image}
            {reference: Srcset.choose(srcset, sizes: attributes["sizes"], src: attributes.text("src")), kind: :image}
          end

          def picture(_attributes)
            @picture = :none
            nil
          end

          def source(attributes)
            return unless @picture == :none
            @picture = :unsure
            @picture = chosen(attributes)
            nil
          end

          def chosen(attributes)
            fits = MediaQueries.match(attributes.text("media"), width: Srcset::VIEWPORT)
            return :none if fits == false || !attributes.key?("srcset")
            type = MediaTypes.essence(attributes.word("type"))
            return :unsure if fits.nil? || !(type.empty? || MediaTypes::IMAGE.include?(type))
            reference = Srcset.choose(attributes["srcset"], sizes: attributes["sizes"])
            reference.empty? ? :none : reference
          end

          def input(attributes)
            {reference: attributes.text("src"), kind: :image} if attributes.word("type") == "image"
          end

          def link(attributes) = Links.read(attributes)

          def script(attributes)
            type = MediaTypes.script(attributes) or return
            return if type == :classic && (attributes.key?("nomodule") || (attributes.key?("for") && attributes.key?("event")))
            {reference: attributes.text("src"), kind: :script, script_module: type == :module}
          end

          def video(attributes)
            {reference: attributes.text("poster"), kind: :image} unless attributes.word("loading") == "lazy"
          end

          # A second body adds its attributes to the first, which is not supported.
          def body(attributes)
            first = !@body
            @body = true
            background(attributes) if first
          end

          def table(attributes)
            @tables += 1
            background(attributes)
          end

          # Outside of a table the parser ignores these tags.
          def cell(attributes)
            background(attributes) if @tables > 0
          end

          def background(attributes) = {reference: attributes.text("background"), kind: :image}
        end
      end
    end
  end
end
