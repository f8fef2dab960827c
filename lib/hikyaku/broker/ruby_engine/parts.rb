# frozen_string_literal: true

require_relative "acks"
require_relative "clock"
require_relative "deliveries"
require_relative "handshake"
require_relative "intake"
require_relative "lapses"
require_relative "messages"
require_relative "output"
require_relative "producers"
require_relative "queues"
require_relative "recovery"
require_relative "reports"
require_relative "sessions"
require_relative "settlement"
require_relative "store"
require_relative "subscriptions"

module Hikyaku
  module Broker
    class RubyEngine
      # The parts of an engine. Each owns its state and reaches the others here. Each has a twin in C:
      #
      #     Acks           hk_broker_ack         Output         hk_broker_output
      #     Deliveries     hk_broker_deliver     Producers      hk_broker_producer, hk_broker_identities
      #     Handshake      hk_broker_hello       Queues         hk_broker_queue
      #     Intake         hk_broker_send        Recovery       hk_broker_replay
      #     Lapses         hk_broker_lapse       Reports        hk_broker_report, hk_broker_explain, hk_broker_dead
      #     Messages       hk_broker_message     Settlement     hk_broker_settle
      #     Sessions       hk_broker             Store          hk_broker_store, hk_broker_ledger
      #                                          Subscriptions  hk_broker_subscribe
      class Parts
        attr_reader :limits, :clock, :levels, :acks, :deliveries, :handshake, :intake, :lapses, :messages, :output, :producers, :queues, :recovery, :reports,
          :sessions, :settlement, :subscriptions
        # nil: the broker has no storage.
        attr_accessor :store
        # Milliseconds after which a client may connect again, from `drain` on.
        attr_accessor :draining
        attr_accessor :closed

        def initialize(limits:, clock:, levels:, max_identities:, max_stored:, open:)
          @limits = limits
          @clock = clock
          @levels = levels
          @output = Output.new
          @acks = Acks.new(self)
          @deliveries = Deliveries.new(self)
          @handshake = Handshake.new(self, open: open)
          @intake = Intake.new(self, max_stored: max_stored)
          @lapses = Lapses.new(self)
          @messages = Messages.new(self)
          @producers = Producers.new(self, max_identities)
          @queues = Queues.new(self)
          @recovery = Recovery.new(self)
          @reports = Reports.new(self)
          @sessions = Sessions.new(self)
          @settlement = Settlement.new(self)
          @subscriptions = Subscriptions.new(self)
        end
      end

      # The levels of acknowledgement that this broker offers: the highest, and that of a SEND which leaves it to the broker.
      Levels = Struct.new(:highest, :default) do
        def written = [Level::WRITTEN, highest].min
      end
    end
  end
end
