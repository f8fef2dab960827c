# frozen_string_literal: true

module Hikyaku
  class Hub
    # Sums up the cost of all patterns that one topic can be compared with: a radix tree of the fixed texts with which patterns begin.
    # A node exists because patterns begin with exactly its key, or because its children differ there. The twin of hk_index_costs.
    class BeginningCosts
      # As PrefixTable.
      LONGEST = 512
      # `children`: by the byte after the key. `heaviest`: the cost of the most expensive path below.
      Node = Struct.new(:key, :parent, :children, :cost, :heaviest)
      private_constant :LONGEST, :Node

      def initialize = @root = node("", nil)

      def add(beginning, cost)
        key = key_of(beginning)
        node, beyond = walk(key)
        node = part(node, beyond, key) if beyond
        node = hang(node(key, node)) if node.key.bytesize < key.bytesize
        node.cost += cost
        weigh(node.parent)
      end

      def remove(beginning, cost)
        node, = walk(key_of(beginning))
        node.cost -= cost
        weigh(node.parent)
        prune(node)
      end

      # The highest cost of a text with this beginning: the nodes above it, and the most expensive path below.
      def through(beginning)
        key = key_of(beginning)
        node, beyond = walk(key)
        cost = if beyond&.key&.start_with?(key) then beyond.cost + beyond.heaviest
        else (node.key.bytesize == key.bytesize) ? node.heaviest : 0
        end
        while node
          cost += node.cost
          node = node.parent
        end
        cost
      end

      def empty? = @root.cost.zero? && @root.children.empty?

      def inspect = "#<#{self.class}>"

      private

      def node(key, parent) = Node.new(key, parent, {}, 0, 0)

      def key_of(beginning) = beginning.byteslice(0, LONGEST).b

      # The deepest node whose key is a prefix of the given key, and its child that shares only a part of the rest, if there is one.
      def walk(key)
        last = @root
        while last.key.bytesize < key.bytesize && (child = last.children[key.getbyte(last.key.bytesize)])
          return [last, child] unless key.start_with?(child.key)
          last = child
        end
        [last, nil]
      end

      def hang(child)
        child.parent.children[child.key.getbyte(child.parent.key.bytesize)] = child
      end

      # Inserts a node, with the common prefix of two keys, between a node and its child.
      def part(parent, child, key)
        same = (0...key.bytesize).find { |at| key.getbyte(at) != child.key.getbyte(at) } || key.bytesize
        hang(node(key.byteslice(0, same), parent)).tap do |made|
          child.parent = made
          hang(child)
          weigh(made)
        end
      end

      def weigh(node)
        while node
          node.heaviest = node.children.each_value.map { |child| child.cost + child.heaviest }.max || 0
          node = node.parent
        end
      end

      # Removes a node without cost and with fewer than two children, and then its parent, likewise.
      def prune(node)
        while node.parent && node.cost.zero? && node.children.size < 2
          child = node.children.each_value.first
          if child
            child.parent = node.parent
            hang(child)
          else
            node.parent.children.delete(node.key.getbyte(node.parent.key.bytesize))
          end
          node = node.parent
        end
      end
    end
  end
end
