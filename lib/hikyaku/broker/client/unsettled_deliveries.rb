# frozen_string_literal: true

require_relative "../wire"

module Hikyaku
  module Broker
    class Client
      # The deliveries of the current connection that the broker has not heard of: those that are out, by their rising numbers, and
      # those that were acknowledged here. One FREE covers consecutive acknowledgements, and one TOUCH consecutive leases.
      #
      # Every method is called with the connection's lock.
      class UnsettledDeliveries
        # A range passes over at most so many numbers between two deliveries.
        MAX_GAP = 256
        private_constant :MAX_GAP

        # Seconds on the monotonic clock; nil: no lease to renew.
        attr_reader :renew_at

        def initialize
          clear
        end

        def empty? = @out.empty? && @acked.empty?

        def acked? = !@acked.empty?

        def acked_count = @acked.size

        # @return [Boolean] {#renew_at} is earlier now
        def add(delivery, now)
          @out[delivery.number] = delivery
          # A third of the lease, so that a TOUCH may come too late twice.
          interval = delivery.lease / 3
          @renew_every = interval if @renew_every.nil? || interval < @renew_every
          return false if @renew_at && @renew_at <= now + @renew_every
          @renew_at = now + @renew_every
          true
        end

        def remove(number) = @out.delete(number)

        def ack(number)
          @out.delete(number)
          @acked << number
        end

        # The connection broke, and every lease ended with it.
        #
        # @return [Array<Delivery>] those that were out
        def clear
          out = @out ? @out.values : []
          @out = {}
          @acked = []
          @renew_every = @renew_at = nil
          out
        end

        # Removes and yields the frames that report the acknowledgements.
        def each_ack_frame
          return unless acked?
          acked = @acked
          @acked = []
          return yield Wire.free(first: acked.first) if acked.size == 1
          ranges(acked.sort) { |first, last| yield Wire.free(first: first, last: last) }
        end

        # Renews the leases that the client keeps.
        #
        # @return [Array<String>] frames
        def renew(now)
          kept = @out.each_value.chunk_while { |one, other| one.kept? && other.kept? && other.number - one.number <= MAX_GAP }.select { |run| run.first.kept? }
          kept.each { |run| run.each { |delivery| delivery.renew(now, delivery.lease) } }
          @renew_at = @out.empty? ? nil : now + @renew_every
          kept.map { |run| Wire.touch(first: run.first.number, last: run.last.number) }
        end

        private

        # A range may pass over numbers that were settled before.
        def ranges(numbers)
          first = last = numbers.shift
          numbers.each do |number|
            unless number - last <= MAX_GAP && (last + 1...number).none? { |between| @out.key?(between) }
              yield first, last
              first = number
            end
            last = number
          end
          yield first, last
        end
      end
    end
  end
end
