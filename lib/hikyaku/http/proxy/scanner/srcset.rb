# frozen_string_literal: true

require_relative "media"

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # Which of several images Chromium takes, at one device pixel per CSS pixel and a viewport of so many.
        #
        # HTML Standard, sections "Parsing a srcset attribute", "Parsing a sizes attribute", "Selecting an image source".
        module Srcset
          VIEWPORT = 1280
          URL = /\G[\t\n\f\r ,]*([^\t\n\f\r ]+)/n
          # Up to a comma that is in no brackets.
          DESCRIPTORS = /\G((?:[^,(]++|\([^)]*+\)?)*+),?/n
          WIDTH = /\A[0-9]+w\z/n
          DENSITY = /\A[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?x\z/n
          HEIGHT = /\A[0-9]+h\z/n
          LENGTH = /\A([0-9]*\.?[0-9]+)(px|vw|em|rem)\z/
          PIXELS = {"px" => 1.0, "vw" => VIEWPORT / 100.0, "em" => 16.0, "rem" => 16.0}.freeze
          private_constant :URL, :DESCRIPTORS, :WIDTH, :DENSITY, :HEIGHT, :LENGTH, :PIXELS

          # One image: `per` says of what `number` is, :width or :density.
          Candidate = Struct.new(:url, :number, :per)
          private_constant :Candidate

          class << self
            def choose(srcset, sizes: nil, src: "")
              candidates = parse(srcset)
              widths = candidates.any? { |candidate| candidate.per == :width }
              size = width(sizes.to_s) if widths
              found = candidates.map { |candidate| [candidate.url, (candidate.per == :width) ? candidate.number / size : candidate.number] }
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

            # What is malformed is no candidate.
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

            # Of the first size whose condition holds, in pixels.
            def width(sizes)
              sizes = Media.normal(sizes)
              return VIEWPORT.to_f if sizes.empty?
              sizes.split(",").each do |entry|
                condition, _, length = entry.strip.rpartition(" ")
                number, unit = LENGTH.match(length)&.captures
                throw :unsure if number.nil? || !(condition.empty? || condition.start_with?("("))
                holds = Media.match(condition, width: VIEWPORT)
                throw :unsure if holds.nil?
                return number.to_f * PIXELS.fetch(unit) if holds
              end
              VIEWPORT.to_f
            end
          end
        end
      end
    end
  end
end
