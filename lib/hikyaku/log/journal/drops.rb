# frozen_string_literal: true

module Hikyaku
  module Log
    class Journal
      # Which segments are not needed any more, and how far that has come. Each number goes through the lists in this order:
      #
      #     requested ──► said: DROPPED is appended ──► written ──► synced: the file may go ──► gone
      #
      # A number that was said is repeated in each new segment until a checkpoint names it. Guarded by the journal's lock.
      class Drops
        # @return [Array<Integer>] whose DROPPED is on the disk, and whose files may be removed
        attr_reader :synced
        # @return [Array<Integer>] those on the disk that a checkpoint has to name
        attr_reader :known
        # @return [Array<Integer>] what each new segment repeats
        attr_reader :unnamed

        # @param known [Array<Integer>]
        # @param unnamed [Array<Integer>] those that no checkpoint names
        def initialize(known, unnamed)
          @known = known
          @unnamed = unnamed
          @requested = []
          @written = []
          @synced = []
          @said = {}
        end

        # @param number [Integer]
        # @return [Boolean] false: it was requested before
        def request(number)
          return false if @said[number] || @requested.include?(number)
          @requested << number
          true
        end

        # Without the lock, for the thread that requests and says.
        #
        # @return [Boolean] whether any waits to be said
        def requested? = !@requested.empty?

        # Those that can be said now. A segment behind one that has no end is the only witness of that, so it stays as
        # long as that one.
        #
        # @param segments [Hash{Integer => Segment}]
        # @return [Array<Integer>]
        def sayable(segments)
          @requested.sort.each_with_object([]) do |number, going|
            before = segments[number - 1]
            going << number if before.nil? || before.whole? || @said[number - 1] || going.include?(number - 1)
          end
        end

        # @param numbers [Array<Integer>] DROPPED was appended
        # @return [void]
        def say(numbers)
          @requested -= numbers
          @unnamed |= numbers
          numbers.each { |number| @said[number] = true }
        end

        # @param numbers [Array<Integer>] DROPPED was written
        # @return [void]
        def write(numbers)
          @written |= numbers unless numbers.empty?
        end

        # @return [Array<Integer>] those that a sync that begins now brings to the disk
        def take_written = @written.tap { @written = [] }

        # @param numbers [Array<Integer>]
        # @return [void]
        def sync(numbers)
          fresh = numbers - @known
          @known += fresh
          @synced += fresh
        end

        # @return [Array<Integer>] those whose files are to be removed now
        def take_synced = @synced.tap { @synced = [] }

        # A checkpoint was written.
        #
        # @param first [Integer] the first segment that it needs
        # @param named [Array<Integer>]
        # @return [void]
        def name(first, named)
          @unnamed = @unnamed.reject { |number| number < first } - named
          @known = @known.reject { |number| number < first }
          @said.delete_if { |number, _| number < first }
        end

        # @param number [Integer]
        # @return [Boolean] whether it is on the disk that it is not needed
        def known?(number) = @known.include?(number)

        # @return [Boolean] whether there is something for a sync to bring to the disk
        def waiting? = !@written.empty?
      end
    end
  end
end
