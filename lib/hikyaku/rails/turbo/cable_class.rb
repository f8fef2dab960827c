# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  module Turbo
    # The class that turbo_stream_from is given as `channel:`. Action Cable would ask it which stream a page follows; here the door
    # does (Door::Inquiry).
    module CableClass
      OWN = "Turbo::StreamsChannel"
      private_constant :OWN

      @told = {}
      @lock = Mutex.new

      class << self
        def name_of(channel)
          name = channel.to_s
          name unless name.empty? || name == OWN || !find(name)
        end

        def find(name)
          refuse(name, "there is no Action Cable in this application, whose class it could be: leave channel: out") unless defined?(::ActionCable)
          type = name.safe_constantize
          unless type.is_a?(Class) && type < ::ActionCable::Channel::Base
            refuse(name, "that is no class of Action Cable: give a subclass of #{OWN} or of ActionCable::Channel::Base, or leave channel: out")
          end
          refuse(name, "it does something `periodically`, which needs a connection of Action Cable: let a job do that") if type.periodic_timers.any?
          tell_once(name) if ends?(type)
          type
        end

        private

        def refuse(name, reason) = raise(ConfigError, "turbo_stream_from was given channel: #{name}, and #{reason}")

        # Beside the callbacks that every class has.
        def ends?(type)
          type.instance_method(:unsubscribed).owner != ::ActionCable::Channel::Base ||
            type.__callbacks[:unsubscribe].count > ::ActionCable::Channel::Base.__callbacks[:unsubscribe].count
        end

        def tell_once(name)
          return if @lock.synchronize { @told[name] || !(@told[name] = true) }
          ::Rails.logger&.warn("Hikyaku: turbo_stream_from was given channel: #{name}: the class is asked which stream a page follows, " \
            "and never told that a page has left: `unsubscribed` and its callbacks are not called")
        end
      end
    end
  end
end
