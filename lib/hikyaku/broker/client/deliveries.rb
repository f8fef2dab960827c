# frozen_string_literal: true

require_relative "../wire"

module Hikyaku
  module Broker
    class Client
      # What is out on the connection of the moment: deliveries by number, which rise, and those that are done with and not yet
      # reported. One FREE says it of all that follow each other.
      #
      # Every method is called with the client's lock.
      class Deliveries
        # Numbers between two deliveries that are looked at to see whether a range may cover them.
        GAP = 256
        private_constant :GAP

        def initialize
          @out = {}
          @freed = []
        end

        def none? = @out.empty? && @freed.empty?

        def any_freed? = !@freed.empty?

        def freed_count = @freed.size

        def [](id) = @out[id]

        def add(delivery)
          @out[delivery.number] = delivery
        end

        def remove(id) = @out.delete(id)

        def free(id)
          @out.delete(id)
          @freed << id
        end

        # The connection is gone, and with it all leases.
        def clear
          gone = @out.values
          @out = {}
          @freed = []
          gone
        end

        def frees
          return [] if @freed.empty?
          freed = @freed
          @freed = []
          return [Wire.free(first: freed.first)] if freed.size == 1
          ranges(freed.sort).map { |first, last| Wire.free(first: first, last: last) }
        end

        def keep(now)
          @out.each_value { |delivery| delivery.renew(now, delivery.lease) if delivery.kept? }
          runs = @out.each_value.chunk_while { |one, other| one.kept? && other.kept? && other.number - one.number <= GAP }
          runs.filter_map { |run| Wire.touch(first: run.first.number, last: run.last.number) if run.first.kept? }
        end

        private

        # Numbers between that are not out any more were settled before, and a range may pass over them.
        def ranges(numbers)
          first = last = numbers.shift
          found = []
          numbers.each do |number|
            unless number - last <= GAP && (last + 1...number).none? { |between| @out.key?(between) }
              found << [first, last]
              first = number
            end
            last = number
          end
          found << [first, last]
        end
      end
    end
  end
end
