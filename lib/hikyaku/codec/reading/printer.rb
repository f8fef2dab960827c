# frozen_string_literal: true

require "set"
require_relative "layout"
require_relative "notation"
require_relative "number"

module Hikyaku
  module Codec
    module Reading
      # Shows tokens much like JSON. Of what is long it shows the beginning and says how much more there is; a key that stands in its map again is pointed out.
      class Printer
        # What is shown of each; and how many items are read, all together, shown or not (nil: as many as there are).
        Limits = Struct.new(:entries, :text, :depth, :bytes, :items, keyword_init: true)
        USUAL = Limits.new(entries: 1000, text: 2000, depth: 64, bytes: 4_194_304, items: 1_000_000).freeze
        EVERYTHING = Limits.new(entries: Float::INFINITY, text: Float::INFINITY, depth: 1000, bytes: Float::INFINITY).freeze
        # Keys of one map that are compared.
        COMPARED = 100_000
        BRACKETS = {array: ["[", "]"], map: ["{", "}"]}.freeze
        # Of these several stand in one line.
        SHORT = %i[nil boolean integer float number].freeze
        # `turn` is what comes next in a map: :key or :value.
        Part = Struct.new(:kind, :limit, :shown, :more, :turn, :keys, :short)
        private_constant :COMPARED, :BRACKETS, :SHORT, :Part

        def initialize(out, width: 100, limits: USUAL)
          @layout = Layout.new(out, width: width, max_bytes: limits.bytes)
          @limits = limits
          @parts = []
          @passed = 0
        end

        def <<(token)
          return pass(token) if @passed.positive?
          return close if token.kind == :end
          return self unless placed?(token)
          BRACKETS.key?(token.kind) ? enter(token) : value(token)
          self
        end

        # Begins a line, for one more value behind others.
        def begin_value = @layout.text("\n")

        # Says where it ended too early, or that nothing more is shown.
        def break_off(text)
          @layout.finish
          @layout.text(" … #{Notation.escaped(text)}")
        end

        def finish = @layout.finish

        def full? = @layout.full?

        private

        def enter(token)
          deep = @parts.size >= @limits.depth
          bracket = BRACKETS[token.kind].first
          block_given? ? yield(bracket) : @layout.open(bracket)
          @parts << Part.new(token.kind, deep ? 0 : @limits.entries, 0, 0, :key, nil)
        end

        def value(token)
          text = Notation.scalar(token, @limits.text)
          block_given? ? yield(text) : @layout.text(text)
          after(token)
        end

        # Writes what stands before an entry.
        def placed?(token)
          part = @parts.last or return true
          return placed_value(part) if part.kind == :map && part.turn == :value
          return left_out(part, token) if part.shown >= part.limit
          separate(part, part.kind == :array && SHORT.include?(token.kind))
          part.shown += 1
          true
        end

        def placed_value(part)
          @layout.text(": ")
          true
        end

        def separate(part, short = false)
          @layout.text(",") if part.shown.positive?
          if short && part.short
            @layout.fill(" ")
          else
            @layout.break(part.shown.positive? ? " " : "")
          end
          part.short = short
        end

        def left_out(part, token)
          if part.kind == :map
            part.turn = (part.turn == :key) ? :passed : :key
            part.more += 1 if part.turn == :passed
          else
            part.more += 1
          end
          @passed = 1 if BRACKETS.key?(token.kind)
          false
        end

        def pass(token)
          @passed += 1 if BRACKETS.key?(token.kind)
          @passed -= 1 if token.kind == :end
          self
        end

        def close
          part = @parts.pop
          more(part) if part.more.positive?
          close_with(BRACKETS[part.kind].last)
          after(nil)
          self
        end

        def more(part)
          separate(part)
          @layout.text("… #{Number.text(part.more)} more")
        end

        def close_with(bracket) = @layout.close(bracket)

        def after(token)
          part = @parts.last
          return unless part&.kind == :map
          return part.turn = :key if part.turn == :value
          part.turn = :value
          @layout.text(" (again)") if token && again?(part, token)
        end

        def again?(part, token)
          part.keys ||= Set.new
          part.keys.size < COMPARED && !part.keys.add?([token.kind, token.value])
        end
      end
    end
  end
end
