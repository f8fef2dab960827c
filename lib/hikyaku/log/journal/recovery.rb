# frozen_string_literal: true

require_relative "checkpoint"
require_relative "errors"
require_relative "format"
require_relative "segment_reader"

module Hikyaku
  module Log
    class Journal
      # Reads what is in the folder and judges it: docs/journal.md, "Opening: torn or corrupt". It changes nothing and needs no
      # lock, so it serves those who only want to look as well.
      class Recovery
        # Something that was synced and is not there.
        Damage = Struct.new(:name, :offset, :reason)

        attr_reader :checkpoint
        attr_reader :segments
        attr_reader :leftovers
        attr_reader :unbegun
        attr_reader :damages
        attr_reader :dropped
        attr_reader :synced

        def initialize(files, reading = nil, &block)
          @files = files
          @reading = reading
          @damages = []
          @segments = []
          @leftovers = []
          @dropped = []
          @synced = 0
          read_checkpoint
          read_segments(&block)
          judge
        end

        def check!
          damage = @damages.first or return self
          close
          raise Corrupt.new(@files.path, damage.name, damage.offset, damage.reason)
        end

        def position = newest ? newest.position - 1 : 0

        def newest = @segments.last

        def closed? = newest.nil? || newest.ending == Format::CLOSE

        def identity = @checkpoint&.identity || @segments.find { |segment| segment.header && !segment.trusted? }&.header&.identity

        def first = @segments.first ? @segments.first.number : 1

        # Yields the records of the log, in order, as they were read.
        def replay
          @segments.each do |segment|
            segment.each(verify: false, upto: segment.offset) { |record| yield record if record.type >= Format::TYPES.first }
            segment.close
          end
        end

        def close = (@segments + @leftovers + [@unbegun].compact).each(&:close)

        private

        def read_checkpoint
          return unless @files.list.include?(Checkpoint::NAME)
          @has_checkpoint = true
          file = @files.open(Checkpoint::NAME)
          @checkpoint = Checkpoint.parse(read(file))
        ensure
          @files.close(file) if file
        end

        def read(file)
          bytes = "".b
          size = @files.size(file)
          while bytes.bytesize < size
            piece = @files.read(file, size - bytes.bytesize, bytes.bytesize)
            break if piece.empty?
            bytes << piece
          end
          bytes
        end

        def read_segments
          @synced = @checkpoint.synced if @checkpoint
          @dropped = @checkpoint.dropped.dup if @checkpoint
          numbers = @files.list.filter_map { |name| Format.segment_number(name) }.sort
          @newest_number = [numbers.last || 0, @checkpoint&.newest || 0].max
          all = numbers.map do |number|
            SegmentReader.new(@files, number, @reading).tap do |segment|
              examine(segment) { |record| yield record if block_given? } unless dropped?(number)
              segment.close
            end
          end
          @leftovers, @segments = all.partition { |segment| dropped?(segment.number) }
        end

        def examine(segment, &block)
          segment.each(&block)
          segment.look_behind if segment.number == @newest_number
          @synced = [@synced, segment.synced].max
          bridge(segment, &block) if segment.number == @newest_number
          @dropped |= segment.dropped
        end

        # What nobody knows to have been synced may be torn: then what is whole behind it counts.
        def bridge(segment, &block)
          segment.bridge(&block) if @synced < segment.position
          @synced = [@synced, segment.synced].max
        end

        # What the newest segment says of itself would leave nothing.
        def dropped?(number)
          number != @newest_number && (@dropped.include?(number) || (!@checkpoint.nil? && number < @checkpoint.first))
        end

        def judge
          return damage(Checkpoint::NAME, 0, "its checksum is wrong") if @has_checkpoint && @checkpoint.nil?
          forget_what_was_not_begun
          judge_numbers
          @segments.each_cons(2) { |one, following| judge_pair(one, following) }
          @segments.each { |segment| judge_one(segment) }
          judge_tail if newest&.header
          # Segments have names that sort; of what is wrong in one, the first explains the rest.
          @damages = @damages.sort_by { |damage| [damage.name, damage.offset] }.uniq(&:name)
        end

        # A crash while a segment is begun leaves it like that.
        def forget_what_was_not_begun
          before, last = @segments.last(2)
          return unless last && before.header && before.ending.nil? && before.number + 1 == last.number && @synced < before.position
          return if @checkpoint && @checkpoint.newest >= last.number
          return if last.header && !(last.header.first > before.position && last.offset == Format::HEADER_BYTES && last.size == last.header.size)
          before.look_behind
          @synced = [@synced, before.synced].max
          bridge(before)
          @unbegun = @segments.pop
        end

        def judge_numbers
          due = @checkpoint ? @checkpoint.first : 1
          @segments.each do |segment|
            missing(due) { |number| number < segment.number }
            due = segment.number + 1
          end
          missing(due) { |number| @checkpoint && number <= @checkpoint.newest }
        end

        # The first of the numbers from `due` on that was not dropped.
        def missing(due)
          due += 1 while yield(due) && @dropped.include?(due)
          damage(Format.segment_name(due), 0, "the file is missing") if yield(due)
        end

        def judge_pair(one, following)
          return unless one.header && following.header
          if one.ending
            same = one.number + 1 == following.number
            return if same ? following.header.first == one.position : following.header.first >= one.position
            return damage(following.name, 32, "it begins at position #{following.header.first}, and #{one.position} is due")
          end
          return if one.number + 1 == following.number && following.header.first == one.position
          damage(one.name, one.offset, "position #{one.position} is due there, and the next segment begins at #{following.header.first}")
        end

        def judge_one(segment)
          header = segment.header
          return damage(segment.name, 0, "its header does not verify") unless header
          if header.identity != identity
            damage(segment.name, 8, "it belongs to another journal")
          elsif header.number != segment.number
            damage(segment.name, 24, "its header says number #{header.number}")
          elsif segment.size != header.size
            damage(segment.name, [segment.size, header.size].min, "the file has #{segment.size} bytes, and its header says #{header.size}")
          elsif segment.goes_on?
            damage(segment.name, segment.offset, "a record stands behind the end")
          end
        end

        def judge_tail
          return if position >= @synced
          damage(newest.name, newest.offset, "position #{newest.position} is due there, and positions up to #{@synced} were synced")
        end

        def damage(name, offset, reason)
          @damages << Damage.new(name, offset, reason)
        end
      end
    end
  end
end
