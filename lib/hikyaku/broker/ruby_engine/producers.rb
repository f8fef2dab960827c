# frozen_string_literal: true

require_relative "producer"
require_relative "records"
require_relative "timer_wheel"

module Hikyaku
  module Broker
    class RubyEngine
      # The identities that are remembered (docs/protocol.md, section 6). One that has numbered no message is forgotten when its
      # connection ends. When there are too many, the one that was seen least recently, and is not connected, is forgotten.
      class Producers
        ALL_CONNECTED = "as many identities are remembered as may be, and all of them are connected"

        # How many have numbered a message, and how many of those were forgotten for others.
        attr_reader :remembered, :evicted
        # As many may be remembered.
        attr_reader :max
        # Number of the next one.
        attr_accessor :next_number

        def initialize(parts, max)
          @parts = parts
          @clock = parts.clock
          @max = max
          @producers = {}
          @idle = {}.compare_by_identity
          @sessions = {}
          @idle_timers = TimerWheel.new
          @next_number = 1
          @remembered = @evicted = 0
        end

        def [](identity) = @producers[identity]

        def session_of(identity) = @sessions[identity]

        # Those without a connection, the one that was seen least recently first.
        def idle = @idle.keys

        def idle?(producer) = @idle.key?(producer)

        def connected = @sessions.each_value.map(&:producer)

        # Returns nil where as many are remembered as may be, and all are connected.
        def create(identity)
          return if full?
          @next_number += 1
          @producers[identity] = Producer.new(@next_number - 1, identity)
        end

        def connect(producer, session)
          producer.idle_timer = @idle_timers.cancel(producer.idle_timer, producer)
          @idle.delete(producer)
          # A restart has to know the new epoch.
          @parts.store&.try_append(Records::PRODUCER, Records.producer(producer)) if producer.recorded
          session.producer = producer
          @sessions[session.identity] = session
        end

        def disconnect(session)
          producer = session.producer or return
          @sessions.delete(session.identity)
          (producer.numbered? && !session.forgets) ? add_idle(producer) : forget(producer)
        end

        # Makes room for one that numbers a message now. `durable`: a restart has to find it. Returns false where all are connected.
        # Raises Log::Journal::Full.
        def remember(producer, durable:)
          unless producer.remembered
            return false if full?
            evict if @remembered >= @max
            producer.remembered = true
            @remembered += 1
          end
          store = @parts.store
          if durable && store && !producer.recorded
            record(producer, store, urgent: false)
            producer.recorded = true
          end
          true
        end

        # Without room in the journal for the record, a restart finds it again, as one that is idle.
        def forget(producer)
          @producers.delete(producer.identity)
          @idle.delete(producer)
          @idle_timers.cancel(producer.idle_timer, producer)
          @remembered -= 1 if producer.remembered
          @parts.store&.try_append(Records::PRODUCER_GONE, Records.gone(producer.number)) if producer.recorded
        end

        # Appends those that a new segment has to repeat, in the order in which a restart forgets them.
        def repeat_in(store)
          recorded = @idle.each_key.select(&:recorded) + connected.select(&:recorded)
          recorded.each { |producer| record(producer, store) unless producer.segment == store.current }
        end

        # Adds what was read from the journal, as the one that was seen last.
        def restore(producer)
          @producers.delete(producer.identity)
          @producers[producer.identity] = producer
        end

        def delete(identity) = @producers.delete(identity)

        # After a restart: those that have numbered nothing are not kept, nor are those beyond the limit.
        def prune
          @producers.select! { |_, producer| producer.numbered? }
          @evicted += [@producers.size - @max, 0].max
          @producers.shift while @producers.size > @max
          @remembered = @producers.size
          @producers.each_value do |producer|
            producer.remembered = producer.recorded = true
            add_idle(producer)
          end
        end

        def run_timers(most)
          @idle_timers.expire(@clock.now, most: most) do |producer|
            producer.idle_timer = nil
            forget(producer)
          end
        end

        def next_timer = @idle_timers.next_at

        def clear = [@producers, @idle, @sessions].each(&:clear)

        private

        def full? = @remembered >= @max && @idle.empty?

        def add_idle(producer)
          producer.idle_since = @clock.now
          @idle[producer] = true
          producer.idle_timer = @idle_timers.add(@clock.now + @parts.limits.producer_idle, producer)
        end

        def record(producer, store, urgent: true)
          store.append(Records::PRODUCER, Records.producer(producer), urgent: urgent)
          producer.segment = store.current
        end

        def evict
          @evicted += 1
          forget(@idle.first.first)
        end
      end
    end
  end
end
