# frozen_string_literal: true

module Hikyaku
  class Hub
    class TopicProgram
      # The source of a program: a regular expression over bytes, as nested arrays.
      #
      #     [:bytes, "text"]               these bytes
      #     [:set, mask]                   one byte b with mask[b] == 1
      #     [:all, [node, …]]              one after the other
      #     [:either, [node, …]]           one of them
      #     [:repeat, node, min, max]      so many times; max nil: without end
      #     [:chain, first, sep, [node…]]  some of the nodes, at least one, in order, after `first` and with `sep` between
      #     [:start] [:finish]             nothing, but only there
      module Expression
        EVERY_BYTE = (1 << 256) - 1
        # Any bytes at all.
        ANYTHING = [:repeat, [:set, EVERY_BYTE].freeze, 0, nil].freeze
        # Matches the empty text.
        NOTHING = [:all, [].freeze].freeze
        # Matches nothing at all.
        NEVER = [:set, 0].freeze
        # ? * +
        QUANTIFIERS = [[0, 1], [0, nil], [1, nil]].freeze
        private_constant :QUANTIFIERS

        class << self
          def bytes(text) = [:bytes, text.b.freeze]

          def set(*ranges)
            values = ranges.flat_map { |range| range.is_a?(String) ? range.bytes : Array(range) }
            [:set, values.uniq.sum { |value| 1 << value }]
          end

          # A sequence without sequences in it, and with neighbouring bytes joined.
          def sequence(nodes)
            flat = nodes.flat_map { |node| (node[0] == :all) ? node[1] : [node] }
            joined = flat.chunk_while { |one, other| one[0] == :bytes && other[0] == :bytes }.map do |run|
              (run.size > 1) ? bytes(run.map(&:last).join) : run.first
            end
            joined.reject! { |node| node[0] == :bytes && node[1].empty? }
            (joined.size == 1) ? joined.first : [:all, joined]
          end

          def fixed?(node) = node[0] == :bytes || node[0] == :set

          def wildcards?(expression)
            nodes = (expression[0] == :all) ? expression[1] : [expression]
            nodes.all? { |node| node == ANYTHING || node[0] == :bytes }
          end

          # Joins nested repetitions: (x+)? is x*.
          def repeat(node, min, max)
            return NOTHING if max == 0
            return node if min == 1 && max == 1
            return [:repeat, node, min, max] unless node[0] == :repeat && QUANTIFIERS.include?([min, max]) && QUANTIFIERS.include?(node.last(2))
            _, inner, inner_min, inner_max = node
            [:repeat, inner, min * inner_min, max && inner_max]
          end

          # The number of instructions of an expression's program.
          def size(node)
            case node
            in [:bytes, bytes] then bytes.bytesize
            in [:set, _] | [:start] | [:finish] then 1
            in [:all, nodes] then nodes.sum { |inner| size(inner) }
            in [:either, nodes] then nodes.sum { |inner| size(inner) } + 2 * (nodes.size - 1)
            in [:repeat, inner, 0, nil] then size(inner) + 2
            in [:repeat, inner, min, nil] then size(inner) * min + 1
            in [:repeat, inner, min, max] then size(inner) * max + (max - min)
            in [:chain, first, separator, nodes]
              size(first) + nodes.sum { |inner| 2 * size(inner) + 3 } + (nodes.size - 1) * size(separator)
            end
          end

          def all_but_one?(mask)
            others = EVERY_BYTE ^ mask
            others.positive? && (others & (others - 1)).zero?
          end

          def sets(node, found = {})
            case node
            in [:set, EVERY_BYTE] then nil
            in [:set, mask] then found[mask] = true
            in [:all | :either, nodes] then nodes.each { |inner| sets(inner, found) }
            in [:repeat, inner, _, _] then sets(inner, found)
            in [:chain, first, separator, nodes] then [first, separator, *nodes].each { |inner| sets(inner, found) }
            else nil
            end
            found.size
          end

          def beginning(node)
            case node
            in [:bytes, bytes] then bytes
            in [:all, [[:bytes, bytes], *]] then bytes
            else ""
            end
          end

          # The source of an equivalent binary Regexp; nil for chains.
          def source(node)
            case node
            in [:bytes, bytes] then bytes.each_byte.map { |byte| escape(byte) }.join
            in [:set, 0] then "(?!)"
            in [:set, mask] then "[#{ranges(mask).map { |from, to| "#{escape(from)}-#{escape(to)}" }.join}]"
            in [:all, nodes] then sources(nodes)&.join
            in [:either, nodes] then sources(nodes)&.then { |sources| "(?:#{sources.join("|")})" }
            in [:repeat, inner, min, max] then source(inner)&.then { |source| "(?:#{source}){#{min},#{max}}" }
            else nil
            end
          end

          def ranges(mask)
            values = (0..255).select { |value| mask[value] == 1 }
            values.slice_when { |one, other| other != one + 1 }.map { |run| [run.first, run.last] }
          end

          private

          def sources(nodes)
            sources = nodes.map { |node| source(node) }
            sources if sources.all?
          end

          def escape(byte) = format("\\x%02x", byte)
        end
      end
    end
  end
end
