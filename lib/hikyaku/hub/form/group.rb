# frozen_string_literal: true

require_relative "blocks"
require_relative "epoch"

module Hikyaku
  class Hub
    class Form
      # The compressed streams that receive the same events: those with the same form and the same matchers, whose grants admit
      # nothing private. They share one deflate context, so that an event is compressed once for all of them, and well. What only
      # some of them receive never goes into it, and the length of what they receive tells nothing of what they do not.
      #
      #     epoch     1 2 3 … 64 | 65 66 …       each event behind those of its epoch
      #     joins       ─ ─ … ── | 65 66 …       blocks that stand alone, until the next epoch begins anew
      #
      # An epoch that begins anew costs those who are in step about the size of an event. So it goes on from the one before when
      # nobody waits, and begins early when many do.
      class Group
        # An event of more bytes stands alone, for everybody: what is less can be kept for those who have a part of it.
        LARGE = 61_440
        # An epoch has so many events at least, as long as anybody is in step.
        LEAST = 16
        private_constant :LARGE, :LEAST

        attr_reader :key
        attr_accessor :streams
        attr_accessor :portion

        def initialize(key, newest)
          @key = key
          @newest = newest
          @blocks = Blocks.new(Blocks::SHARED_LEVEL)
          @epoch = @former = nil
          @missed = 0
          @streams = 0
          @portion = nil
        end

        def epoch_for(position, cursor, epoch)
          add(position, yield) if position > @newest
          if @epoch&.sends?(position, cursor, epoch) then @epoch
          elsif @former&.sends?(position, cursor, epoch) then @former
          end
        end

        # One of its streams has got what stands alone, or is about to.
        def missed! = @missed += 1

        def passes?(portion, epoch)
          portion.last <= @newest && [@epoch, @former].none? { |each| each&.of_use?(portion, epoch) }
        end

        def inspect = "#<#{self.class.name} #{@streams} streams>"

        private

        def add(position, bytes)
          @newest = position
          return end_epoch if bytes.bytesize > LARGE
          begin_epoch if @epoch.nil? || @epoch.full? || @epoch.deserted? || wanted?
          @epoch.add(position, @blocks.follow(bytes))
        end

        # What stood alone since it began is as much as beginning anew costs.
        def wanted? = @epoch.count >= LEAST && @missed >= @streams

        def begin_epoch
          goes_on = @epoch && @missed.zero? && !@epoch.deserted?
          end_epoch
          @blocks.begin_anew unless goes_on
          @epoch = Epoch.new(goes_on ? @former : nil)
          @missed = 0
        end

        # Those who have not got all of it yet can still get the rest, until the next has ended.
        def end_epoch
          return unless @epoch
          @former&.over!
          @former, @epoch = @epoch, nil
        end
      end
    end
  end
end
