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
        attr_reader :synced
        attr_reader :known
        attr_reader :unnamed

        def initialize(known, unnamed)
          @known = known
          @unnamed = unnamed
          @requested = []
          @written = []
          @synced = []
          @said = {}
        end

        def request(number)
          return false if @said[number] || @requested.include?(number)
          @requested << number
          true
        end

        # Without the lock, for the thread that requests and says.
        def requested? = !@requested.empty?

        # Those that can be said now. A segment behind one that has no end is the only witness of that, so it stays as
        # long as that one.
        def sayable(segments)
          @requested.sort.each_with_object([]) do |number, going|
            before = segments[number - 1]
            going << number if before.nil? || before.whole? || @said[number - 1] || going.include?(number - 1)
          end
        end

        def say(numbers)
          @requested -= numbers
          @unnamed |= numbers
          numbers.each { |number| @said[number] = true }
        end

        def write(numbers)
          @written |= numbers unless numbers.empty?
        end

        def take_written = @written.tap { @written = [] }

        def sync(numbers)
          fresh = numbers - @known
          @known += fresh
          @synced += fresh
        end

        def take_synced = @synced.tap { @synced = [] }

        # A checkpoint was written.
        def name(first, named)
          @unnamed = @unnamed.reject { |number| number < first } - named
          @known = @known.reject { |number| number < first }
          @said.delete_if { |number, _| number < first }
        end

        def known?(number) = @known.include?(number)

        def waiting? = !@written.empty?
      end
    end
  end
end
