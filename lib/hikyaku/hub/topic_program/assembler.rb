# frozen_string_literal: true

require_relative "expression"
require_relative "format"

module Hikyaku
  class Hub
    class TopicProgram
      # Assembles the bytes of a program from an expression. docs/topic-program.md describes them.
      class Assembler
        def initialize(expression)
          @instructions = []
          @sets = {}
          emit(expression)
          add(MATCH)
        end

        def bytes
          sets = @sets.keys.map { |mask| (0...32).map { |index| (mask >> (index * 8)) & 255 }.pack("C*") }.join
          [VERSION, @sets.size, @instructions.size].pack("CCn") + sets + @instructions.map { |instruction| instruction.pack("CCn") }.join
        end

        private

        def add(op, argument = 0, target = 0) = @instructions << [op, argument, target]

        def here = @instructions.size

        # A jump or a split whose target `land` sets later.
        def pending(op)
          add(op)
          @instructions.last
        end

        def land(*instructions) = instructions.each { |instruction| instruction[2] = here }

        def emit(node)
          case node
          in [:bytes, bytes] then bytes.each_byte { |byte| add(BYTE, byte) }
          in [:set, Expression::EVERY_BYTE] then add(ANY)
          in [:set, mask] then add(SET, set(mask))
          in [:all, nodes] then nodes.each { |inner| emit(inner) }
          in [:either, nodes] then either(nodes)
          in [:repeat, inner, min, max] then repeat(inner, min, max)
          in [:chain, first, separator, nodes] then chain(first, separator, nodes)
          in [:start] then add(START)
          in [:finish] then add(FINISH)
          end
        end

        def set(mask) = @sets[mask] ||= @sets.size

        def either(nodes)
          ends = nodes[0..-2].map do |node|
            otherwise = pending(SPLIT)
            emit(node)
            done = pending(JUMP)
            land(otherwise)
            done
          end
          emit(nodes.last)
          land(*ends)
        end

        def repeat(node, min, max)
          return endless(node, min) if max.nil?
          min.times { emit(node) }
          ends = Array.new(max - min) do
            enough = pending(SPLIT)
            emit(node)
            enough
          end
          land(*ends)
        end

        def endless(node, min)
          if min.zero?
            again = here
            enough = pending(SPLIT)
            emit(node)
            add(JUMP, 0, again)
            land(enough)
          else
            (min - 1).times { emit(node) }
            again = here
            emit(node)
            add(SPLIT, 0, again)
          end
        end

        # Emits each node twice: as the first one present, and after others.
        def chain(first, separator, nodes)
          emit(first)
          entries = nodes.each_index.map do |index|
            otherwise = pending(SPLIT) unless index == nodes.size - 1
            emit(nodes[index])
            entry = pending(JUMP)
            land(otherwise) if otherwise
            entry
          end
          nodes.each_index do |index|
            unless index.zero?
              skip = pending(SPLIT)
              emit(separator)
              emit(nodes[index])
              land(skip)
            end
            land(entries[index])
          end
        end
      end
    end
  end
end
