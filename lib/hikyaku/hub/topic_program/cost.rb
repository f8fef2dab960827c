# frozen_string_literal: true

require_relative "expression"
require_relative "format"

module Hikyaku
  class Hub
    class TopicProgram
      # Finds the highest number of steps that a run takes for each byte of the text, without assembling the program.
      # docs/topic-program.md has the model.
      module Cost
        # `width`: instructions of a node that can be active at one offset. `length`: bytes that the node reads; nil where texts of
        # different lengths match, so that a run can be at several of its instructions at once.
        Extent = Struct.new(:width, :length)
        private_constant :Extent

        class << self
          def of(expression) = compared?(expression) ? 0 : [width(expression), STEPS_A_BYTE].min

          def width(expression) = extent(expression).width + 1

          def size(expression) = compared?(expression) ? 0 : Expression.size(expression) - Expression.beginning(expression).bytesize

          private

          # The shapes that are exempt from counting.
          def compared?(expression)
            case expression
            in [:bytes, _] | Expression::ANYTHING | Expression::NOTHING then true
            in [:all, [[:bytes, _], Expression::ANYTHING]] then true
            in [:all, [[:bytes, _], [:repeat, [:set, mask], 1, nil]]] then Expression.all_but_one?(mask)
            else false
            end
          end

          def extent(node)
            case node
            in [:bytes, bytes] then Extent.new(1, bytes.bytesize)
            in [:set, _] then Extent.new(1, 1)
            in [:start] | [:finish] then Extent.new(1, 0)
            in [:all, nodes] then sequence(nodes)
            in [:either, nodes] then alternatives(nodes.map { |inner| extent(inner) })
            in [:repeat, inner, min, max] then repeated(node, extent(inner), min, max)
            in [:chain, *] then Extent.new(Expression.size(node), nil)
            end
          end

          # As long as each node has one length, a run is at one node at a time. After a node without one, it can be at all the rest at
          # once, unless the next byte tells that the repetition of a set has ended.
          def sequence(nodes)
            widest = empty = 0
            length = 0
            nodes.each_with_index do |node, index|
              part = extent(node)
              length = (length + part.length if length && part.length)
              if part.length == 0 then empty += part.width
              elsif part.length then widest = [widest, part.width].max
              elsif ended_by?(node, nodes[index + 1]) then widest = [widest, part.width + 1].max
              else
                rest = nodes.drop(index + 1).sum { |following| Expression.size(following) }
                return Extent.new([widest, part.width + rest].max + empty, nil)
              end
            end
            Extent.new(widest + empty, length)
          end

          def ended_by?(node, following)
            return false unless node in [:repeat, [:set, mask], _, _]
            case following
            in [:bytes, bytes] then mask[bytes.getbyte(0)].zero?
            in [:set, other] then (mask & other).zero?
            else false
            end
          end

          def alternatives(extents)
            lengths = extents.map(&:length).uniq
            Extent.new(extents.sum(&:width) + 2 * (extents.size - 1), (lengths.first if lengths.size == 1))
          end

          def repeated(node, inner, min, max)
            return Extent.new(Expression.size(node), nil) unless inner.length&.positive?
            (min == max) ? Extent.new(inner.width, inner.length * min) : Extent.new(inner.width + 2, nil)
          end
        end
      end
    end
  end
end
