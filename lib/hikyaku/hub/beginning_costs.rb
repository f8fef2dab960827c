# frozen_string_literal: true

module Hikyaku
  class Hub
    # What the patterns cost together that a topic can lead to: a tree of beginnings, in which each node's key begins those of its
    # children. A node is there for its own cost, or because children part there. hk_index_costs is the same in C.
    class BeginningCosts
      # As PrefixTable.
      LONGEST = 512
      # children: by the byte behind the key. heaviest: cost of the heaviest way below.
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

      # Takes away what was added.
      def remove(beginning, cost)
        node, = walk(key_of(beginning))
        node.cost -= cost
        weigh(node.parent)
        prune(node)
      end

      # The heaviest that texts with this beginning lead to: the beginnings that begin it, and one way of those that it begins.
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

      # The last node on the way to a key whose own key begins it; and the one behind it that does not.
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

      # Puts a node with what two keys have in common between two.
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

      # Takes out a node without cost at which no children part, and then its parent, likewise.
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
