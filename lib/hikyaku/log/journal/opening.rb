# frozen_string_literal: true

require "securerandom"
require_relative "drops"
require_relative "format"
require_relative "recovery"
require_relative "segment"

module Hikyaku
  module Log
    class Journal
      # Takes over what a journal's folder holds: reads it, repairs a torn tail, and brings to the disk what the process before may not have.
      #
      # It changes files only once everything was read and judged.
      class Opening
        attr_reader :identity, :drops, :newest
        # By number.
        attr_reader :segments
        # Number of the next segment.
        attr_reader :number
        # Of the newest record.
        attr_reader :position
        # Places in the newest segment that did not verify, before records that do, and the name of its file.
        attr_reader :holes, :torn_segment
        # Bytes behind the newest record in its segment.
        attr_reader :open_end

        def initialize(files, reading)
          @files = files
          @reading = reading
          @segments = {}
          @holes = []
        end

        # Yields each record of the log. Raises Corrupt.
        def read
          @files.list.each { |name| @files.unlink(name) if Format.temporary?(name) }
          @recovery = Recovery.new(@files, @reading).check!
          @newest = @recovery.newest
          return unless block_given?
          @recovery.replay do |record|
            @reading.record
            yield record
          end
        end

        # What was read is not known to be on the disk: the process before may have been told of no failure.
        def take_over
          skip_holes if @newest
          @in_order = @recovery.closed?
          @open_end = @newest ? @newest.limit - @newest.offset : 0
          @recovery.segments.each do |segment|
            segment.sync if segment.equal?(@newest) || segment.position - 1 > @recovery.synced
            segment.close
          end
          remove([*@recovery.leftovers, *@recovery.unbegun])
          @recovery.segments.each { |segment| @segments[segment.number] = Segment.new(segment.header, whole: !segment.ending.nil?) }
          @identity = @recovery.identity || SecureRandom.bytes(Format::IDENTITY_BYTES)
          @number = @newest ? @newest.number + 1 : 1
          @position = @recovery.position
          @drops = drops_of(@recovery.checkpoint)
        end

        # Whether the process before had ended the journal in order, so that nothing of it can be missing.
        def in_order? = @in_order

        # Whether the newest segment had no end.
        def torn? = !@newest.nil? && @newest.ending.nil?

        def close
          @recovery&.close
          @recovery = nil
        end

        private

        # The next process that reads the segment goes on where this one does.
        def skip_holes
          @holes = @newest.holes.reject(&:recorded)
          return if @holes.empty?
          file = @files.reopen(@newest.name)
          @holes.each { |hole| @files.write_all(file, @newest.skip(hole), hole.from) }
          @files.sync(file)
          @torn_segment = @newest.name
        ensure
          @files.close(file) if file
        end

        def remove(segments)
          return if segments.empty?
          segments.each { |segment| @files.unlink(segment.name) }
          @files.sync_folder
        end

        def drops_of(checkpoint)
          first = checkpoint&.first || 1
          dropped = @recovery.dropped.select { |number| number >= first }
          Drops.new(dropped, dropped - (checkpoint&.dropped || []))
        end
      end
    end
  end
end
