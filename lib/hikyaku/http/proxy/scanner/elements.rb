# frozen_string_literal: true

require_relative "links"
require_relative "media"
require_relative "referrer_policy"
require_relative "srcset"
require_relative "types"

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # What the elements of a page ask for, one after the other.
        class Elements
          RULES = {
            "img" => :image, "image" => :image, "input" => :input, "link" => :link, "script" => :script, "picture" => :picture, "source" => :source,
            "video" => :video, "body" => :body, "table" => :table, "tbody" => :cell, "thead" => :cell, "tfoot" => :cell, "tr" => :cell, "td" => :cell, "th" => :cell
          }.freeze
          # Those whose attribute crossorigin is about what is found.
          CORS = %w[img image link script].freeze
          # Those whose attribute nonce a policy may ask for.
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

          def referrer_policy(attributes)
            ReferrerPolicy.named(attributes.word("referrerpolicy"))
          end

          # The sources before the image come first. Where a picture ends, the tree knows; this lets go of it after its image.
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
            fits = Media.match(attributes.text("media"), width: Srcset::VIEWPORT)
            return :none if fits == false || !attributes.key?("srcset")
            type = Types.essence(attributes.word("type"))
            return :unsure if fits.nil? || !(type.empty? || Types::IMAGE.include?(type))
            reference = Srcset.choose(attributes["srcset"], sizes: attributes["sizes"])
            reference.empty? ? :none : reference
          end

          def input(attributes)
            {reference: attributes.text("src"), kind: :image} if attributes.word("type") == "image"
          end

          def link(attributes) = Links.read(attributes)

          def script(attributes)
            type = Types.script(attributes) or return
            return if type == :classic && (attributes.key?("nomodule") || (attributes.key?("for") && attributes.key?("event")))
            {reference: attributes.text("src"), kind: :script, script_module: type == :module}
          end

          def video(attributes)
            {reference: attributes.text("poster"), kind: :image} unless attributes.word("loading") == "lazy"
          end

          # A second body adds to the first what that has not, which is not followed.
          def body(attributes)
            first = !@body
            @body = true
            background(attributes) if first
          end

          def table(attributes)
            @tables += 1
            background(attributes)
          end

          # Elsewhere such tags are passed over.
          def cell(attributes)
            background(attributes) if @tables > 0
          end

          def background(attributes) = {reference: attributes.text("background"), kind: :image}
        end
      end
    end
  end
end
