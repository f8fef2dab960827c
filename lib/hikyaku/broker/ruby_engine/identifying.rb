# frozen_string_literal: true

require_relative "producer"
require_relative "records"

module Hikyaku
  module Broker
    class RubyEngine
      # Which identities are remembered (docs/protocol.md, section 6). One that has numbered no message is forgotten when its
      # connection ends. Of those that are not connected, the one that was seen least recently is forgotten when there are too many.
      module Identifying
        # Why another one cannot be.
        ALL_CONNECTED = "as many identities are remembered as may be, and all of them are connected"

        private

        # @return [Producer, nil] nil: as many are remembered as may be, and all are connected
        def new_producer(identity)
          return if crowded?
          @next_producer += 1
          @producers[identity] = Producer.new(@next_producer - 1, identity)
        end

        def crowded? = @remembered >= @max_identities && @idle_producers.empty?

        # It is connected. What the journal knows of it is its new epoch, too.
        def use_producer(producer)
          producer.idle_slot = @idles.cancel(producer.idle_slot, producer)
          @idle_producers.delete(producer)
          @ledger&.mention(Records::PRODUCER, Records.producer(producer)) if producer.recorded
        end

        # It is not connected any more.
        def rest_producer(producer)
          producer.idle_since = @now
          @idle_producers[producer] = true
          producer.idle_slot = @idles.add(@now + @limits.producer_idle, producer)
        end

        # It is going to number a message.
        #
        # @param durable [Boolean] a restart is to find it
        # @return [Boolean] false: as many are remembered as may be, and all are connected
        # @raise [Log::Journal::Full]
        def remember_producer(producer, durable:)
          unless producer.remembered
            return false if crowded?
            evict_producer if @remembered >= @max_identities
            producer.remembered = true
            @remembered += 1
          end
          if durable && @ledger && !producer.recorded
            record_producer(producer, @ledger, urgent: false)
            producer.recorded = true
          end
          true
        end

        def record_producer(producer, ledger, urgent: true)
          ledger.say(Records::PRODUCER, Records.producer(producer), urgent: urgent)
          producer.segment = ledger.current
        end

        def evict_producer
          @evicted += 1
          forget_producer(@idle_producers.first.first)
        end

        # Nothing is known of it any more. Without room to say so, a restart finds it again, as one that is idle.
        def forget_producer(producer)
          @producers.delete(producer.identity)
          @idle_producers.delete(producer)
          @idles.cancel(producer.idle_slot, producer)
          @remembered -= 1 if producer.remembered
          @ledger&.mention(Records::PRODUCER_GONE, Records.gone(producer.number)) if producer.recorded
        end

        # What was read, the one that was seen least recently first: who has numbered nothing is not kept, nor are those beyond the limit.
        def prune_producers
          @producers.select! { |_, producer| producer.numbered? }
          @evicted += [@producers.size - @max_identities, 0].max
          @producers.shift while @producers.size > @max_identities
          @remembered = @producers.size
          @producers.each_value do |producer|
            producer.remembered = producer.recorded = true
            rest_producer(producer)
          end
        end

        # In the order in which a restart forgets them.
        def each_recorded_producer(&block)
          @idle_producers.each_key { |producer| yield producer if producer.recorded }
          @identities.each_value.map(&:producer).select(&:recorded).each(&block)
        end
      end
    end
  end
end
