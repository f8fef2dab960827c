# frozen_string_literal: true

require_relative "expression"
require_relative "format"

module Hikyaku
  class Hub
    class TopicProgram
      # Runs a program: all its active states at once, byte by byte, so that the time is bounded by the length of the program times the
      # length of the text. docs/topic-program.md describes what a runner does. Thread-safe.
      class Runner
        READING = {BYTE => true, SET => true, ANY => true}.freeze
        private_constant :READING

        def initialize(bytes)
          version, sets, count = bytes.unpack("CCn")
          raise ArgumentError, "a topic program of version #{version}: only #{VERSION} is known" unless version == VERSION
          @sets = Array.new(sets) { |index| bytes.byteslice(4 + 32 * index, 32).unpack("C*").each_with_index.sum { |byte, at| byte << (8 * at) } }
          @bytes = bytes
          @first = 4 + 32 * sets
          @count = count
        end

        def run(text)
          ended = text.bytesize
          allowed = TopicProgram.allowed_steps(ended)
          marks = Array.new(@count, -1)
          states = [0]
          steps = 0
          0.upto(ended) do |offset|
            states, matched, added = closure(states, marks, offset, ended)
            steps += added
            return [false, steps] if steps > allowed
            return [matched, steps] if offset == ended
            states = after(states, text.getbyte(offset))
            return [false, steps] if states.empty?
          end
        end

        # The highest number of instructions between two reads, if the program is deterministic: if from every state each byte leads to
        # at most one other, along one path. Then a backtracking engine runs in linear time too.
        def widest_way
          budget = 8 * @count + 2_000
          widest = 1
          starts = [0] + (0...@count).select { |index| READING[op(index)] }.map { |index| index + 1 }
          single = starts.all? do |start|
            next true if READING[op(start)]
            paths = paths_from(start, budget)
            next false unless paths && disjoint?(paths)
            budget -= paths.size
            widest = [widest, paths.size].max
          end
          widest if single
        end

        private

        def op(index) = @bytes.getbyte(@first + 4 * index)

        def argument(index) = @bytes.getbyte(@first + 4 * index + 1)

        def target(index) = (@bytes.getbyte(@first + 4 * index + 2) << 8) | @bytes.getbyte(@first + 4 * index + 3)

        # The instructions that can be reached without reading, each once.
        def closure(states, marks, offset, ended)
          ready = []
          matched = false
          added = 0
          until states.empty?
            index = states.pop
            next if marks[index] == offset
            marks[index] = offset
            added += 1
            case op(index)
            when BYTE, SET, ANY then ready << index
            when JUMP then states << target(index)
            when SPLIT then states << target(index) << index + 1
            when MATCH then matched = true
            when START then states << index + 1 if offset.zero?
            when FINISH then states << index + 1 if offset == ended
            end
          end
          [ready, matched, added]
        end

        def after(states, byte)
          states.filter_map { |index| index + 1 if reads?(index, byte) }
        end

        def reads?(index, byte)
          case op(index)
          when BYTE then argument(index) == byte
          when SET then @sets[argument(index)][byte] == 1
          else true
          end
        end

        # The instructions to which a state leads; nil when two paths lead to the same one.
        def paths_from(start, budget)
          seen = {}
          pending = [start]
          until pending.empty?
            index = pending.pop
            return if seen[index] || seen.size > budget
            seen[index] = true
            case op(index)
            when JUMP then pending << target(index)
            when SPLIT then pending << target(index) << index + 1
            when START, FINISH then return
            end
          end
          seen.keys
        end

        def disjoint?(indices)
          taken = 0
          indices.all? do |index|
            mask = mask_of(index) or next true
            free = (taken & mask).zero?
            taken |= mask
            free
          end
        end

        def mask_of(index)
          case op(index)
          when BYTE then 1 << argument(index)
          when SET then @sets[argument(index)]
          when ANY then Expression::EVERY_BYTE
          end
        end
      end
    end
  end
end
