# frozen_string_literal: true

require "securerandom"
require_relative "../../error"
require_relative "batch"
require_relative "errors"
require_relative "format"
require_relative "segment"

module Hikyaku
  module Log
    class Journal
      # Where the next record goes: into the segment that is being written, or into one that is begun for it, if there is a spare.
      #
      #     bulk      goes on as long as a spare is left behind it, and into the first half of a segment while one is made
      #     urgent    may use the last spare, and what is left of the last segment
      #     DROPPED   may use the last bytes of it, and so may the next process, to repeat what the log remembers
      module Growing
        # Bytes in the last segment that only DROPPED may use: it brings others back.
        DROP_RESERVE = 1024
        private_constant :DROP_RESERVE

        private

        # MARK stands before it if it is the first of its batch, END behind it.
        def fits?(space)
          reserve = (@spares.count > 0 || @beginning) ? 0 : DROP_RESERVE + [@begun_bytes, segment_bytes / 8].min
          tail + space + Format::MARK_BYTES + reserve <= @current.size
        end

        # While there is no spare, the second half of a segment is for what frees something.
        def open_to_bulk? = @beginning || @spares.count > 0 || (!@spares.full? && tail < @current.size / 2)

        # What is not urgent leaves a spare to what is.
        def make_way(space, urgent)
          raise fail_to_begin if @beginning
          raise too_large(space) if space > segment_bytes - Format::HEADER_BYTES - Format::MARK_BYTES - [@begun_bytes, Format::MARK_BYTES].max
          rotate = !fits?(space)
          needed = (rotate ? 1 : 0) + (urgent ? 0 : 1)
          raise disk_full unless ready(needed)
          return unless rotate
          begin_segment
          raise too_large(space) if tail + space + Format::MARK_BYTES > segment_bytes
        end

        # What the segments begin with may have grown since the last one.
        def too_large(space)
          LimitExceeded.new("a record of #{space} bytes does not fit into a segment of #{segment_bytes} bytes; give segment_bytes a larger value")
        end

        def fail_to_begin
          return disk_full if @active.equal?(@current) # it goes on in what is left of one
          @trouble = Failed.new("what has to stand at the beginning of each segment of #{@path} does not fit into #{segment_bytes} bytes; give segment_bytes a larger value")
        end

        # A thread that makes spares has mostly done it before.
        def ready(count) = @spares.count >= count || guarded("make a segment in", "") { @spares.make(count) }

        def seal(finish: false)
          @batch.finish! if finish
          @queue << @batch
          @batch = Batch.new(@current, finish ? 0 : @batch.tail, @appended)
        end

        # The segment that is appended to is full; what comes from now on is for one that gets its name when END is on the disk.
        def begin_segment
          seal(finish: true) if @current
          header = Format::Header.new(@identity, @number, @appended + 1, SecureRandom.bytes(8).unpack1("Q<"), @clock.call, segment_bytes)
          spare = @spares.take
          @current = Segment.new(header, file: spare.file, spare: spare.name)
          @number += 1
          @lock.synchronize { @segments[@current.number] = @current }
          @batch = Batch.new(@current, Format::HEADER_BYTES, @appended)
          remember
        end

        def remember
          @beginning = true
          repeated = @lock.synchronize { @drops.unnamed }
          @batch.drop(repeated) unless repeated.empty?
          @on_begin&.call(self)
          @begun_bytes = @batch.empty? ? 0 : tail - @batch.offset
        ensure
          @beginning = false
        end

        # A drop that finds no room waits until there is some.
        def say_drops
          return unless @drops.requested?
          numbers = @lock.synchronize { @drops.sayable(@segments) }
          return if numbers.empty?
          space = Format.space(8 * numbers.size)
          if tail + space + Format::MARK_BYTES > @current.size
            return unless ready(1)
            begin_segment
          end
          @lock.synchronize { @drops.say(numbers) }
          @batch.drop(numbers)
        end
      end
    end
  end
end
