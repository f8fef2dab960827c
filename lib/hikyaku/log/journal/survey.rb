# frozen_string_literal: true

require_relative "format"
require_relative "recovery"

module Hikyaku
  module Log
    class Journal
      # What can be kept of a damaged journal, and what is lost.
      class Survey
        # A part of a segment in which nothing verifies, or a file that is missing (then `from` is nil); the positions that are not
        # there because of that: ranges, as far as is known.
        Loss = Struct.new(:name, :from, :to, :positions)
        # Where a record stands.
        Found = Struct.new(:position, :segment, :offset)
        private_constant :Found

        attr_reader :losses

        def initialize(recovery)
          @recovery = recovery
          @losses = []
          @found = []
          @dropped = recovery.dropped.dup
          @damaged = recovery.damages.to_h { |damage| [damage.name, damage] }
          @segments = segments_by_header
          @segments.each_with_index do |segment, i|
            look_at(segment, @segments[i + 1])
            segment.close
          end
          @found.reject! { |found| dropped?(number_of(found.segment)) }
          @found = @found.sort_by.with_index { |found, i| [found.position, i] }.uniq(&:position)
          name_missing_files
          @losses.sort_by! { |loss| [loss.name, loss.from || 0] }
        end

        def size = @found.size

        def last = [@found.last&.position || 0, @recovery.synced, @recovery.position].max

        # Yields the records that are kept, in order.
        def each
          @found.each_cons(2) do |found, following|
            yield found.segment.record_at(found.offset)
            found.segment.close unless following.segment.equal?(found.segment)
          end
          yield @found.last.segment.record_at(@found.last.offset) if @found.any?
        end

        private

        # Names may have been mixed up: what a header says of its segment was written with it. Those that were dropped are not
        # needed under whatever name, and one that is needed may have the name of one that was dropped.
        def segments_by_header
          mixed_up = @recovery.leftovers.select { |segment| number_of(segment) != segment.number }
          (@recovery.segments + mixed_up).reject { |segment| dropped?(number_of(segment)) }.sort_by { |segment| [number_of(segment), segment.number] }
        end

        def number_of(segment)
          header = segment.header
          (header && !segment.trusted? && header.identity == @recovery.identity) ? header.number : segment.number
        end

        def known?(segment) = !!segment.header && !segment.trusted? && segment.header.identity == @recovery.identity

        def dropped?(number) = @dropped.include?(number) || (!@recovery.checkpoint.nil? && number < @recovery.checkpoint.first)

        def look_at(segment, following)
          return keep(segment) unless @damaged.key?(segment.name) || @recovery.leftovers.include?(segment)
          # What it holds was never this journal's.
          return lose(segment, 0, segment.size, []) if segment.header && segment.header.identity != @recovery.identity
          segment.trust_header! unless segment.header
          below = (following && known?(following) && number_of(following) == number_of(segment) + 1) ? following.header.first : nil
          search(segment, below)
        end

        def keep(segment)
          segment.each(verify: false, upto: segment.offset) { |record| take(segment, record) }
        end

        def take(segment, record)
          @dropped |= record.body.unpack("Q<*").select { |number| number < number_of(segment) } if record.type == Format::DROPPED
          @found << Found.new(record.position, segment, record.offset - Format::RECORD_BYTES) if record.type >= Format::TYPES.first
        end

        # Record by record, and where none verifies from 8 bytes to 8 bytes.
        def search(segment, below)
          at = Format::HEADER_BYTES
          due = segment.trusted? ? nil : segment.header.first
          gap = nil
          while at + Format::RECORD_BYTES <= segment.limit
            record = segment.record_at(at)
            if record && plausible?(record, due, below)
              lose(segment, gap, at, due ? [due...record.position].reject(&:none?) : []) if gap
              gap = nil
              take(segment, record)
              due = record.position + ((record.type >= Format::TYPES.first) ? 1 : 0)
              at += Format.space(record.body.bytesize)
            else
              gap ||= at
              at = segment.next_candidate(at + 8)
            end
          end
          high = below || (segment.equal?(@segments.last) ? @recovery.synced + 1 : due)
          lose(segment, gap || at, segment.limit, [due...high]) if due && high && due < high
        end

        def plausible?(record, due, below) = (due.nil? || record.position >= due) && (below.nil? || record.position <= below)

        def lose(segment, from, to, positions) = @losses << Loss.new(segment.name, from, to, positions)

        def name_missing_files
          @damaged.each_value do |damage|
            number = Format.segment_number(damage.name)
            next if number.nil? || dropped?(number) || @segments.any? { |segment| number_of(segment) == number || segment.number == number }
            known = @segments.select { |segment| known?(segment) }
            before = known.reverse_each.find { |segment| number_of(segment) < number }&.position || 1
            behind = known.find { |segment| number_of(segment) > number }&.header&.first || @recovery.synced + 1
            @losses << Loss.new(damage.name, nil, nil, (before < behind) ? [before...behind] : [])
          end
        end
      end
    end
  end
end
