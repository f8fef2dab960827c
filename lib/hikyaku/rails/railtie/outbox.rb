# frozen_string_literal: true

require_relative "../outbox"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # `config.hikyaku.outbox`: what Hikyaku.publish is given goes through a table of the application's database, and is
    # published with the commit. The application does not know: broadcasts take the same way.
    #
    #     config.hikyaku.outbox = true
    #     config.hikyaku.outbox = {record: "AnimalsRecord",   the table is in the database of this abstract class
    #                              courier: false}            only `bin/rails hikyaku:outbox` takes rows to the hub
    module OutboxGlue
      CARRIED = :carried
      OPTIONS = {"record" => [String], "courier" => [true, false]}.freeze
      private_constant :OPTIONS

      # Put before Hikyaku's own methods.
      module Storing
        def publish(topics, data = "", outbox: nil, **options)
          current = Outbox.current
          raise ConfigError, "outbox: true needs config.hikyaku.outbox = true" if outbox && current.nil?
          return super(topics, data, **options) if current.nil? || outbox == false || outbox == CARRIED
          data = options.delete(:data) { data }
          current.publish(topics, data, **options)
        end
      end

      module_function

      def settle(settings)
        options = options_of(settings.outbox) or return
        Outbox.current = Outbox.new(
          publish: ->(topics, data, **fields) { Hikyaku.publish(topics, data, outbox: CARRIED, **fields) },
          record: -> { options["record"] ? options["record"].constantize : ::ActiveRecord::Base },
          courier: options.fetch("courier", true), inline: ::Rails.env.test?, limits: Hub::UpdateLimits.of(settings.config), logger: ::Rails.logger
        )
        extend_turbo if settings.turbo.on?
        ActiveSupport::ForkTracker.after_fork { go_on }
        at_exit { Outbox.current&.courier&.stop }
      end

      # In the server's process. One that is about to fork leaves the work to its children.
      def serve
        return if Outbox.current.nil? || ::Rails.env.test?
        Outbox.current.serve(here: !Cluster.preloading?)
      end

      # In a process that was forked from the server's.
      def go_on = Outbox.current&.courier&.forked

      def extend_turbo
        require_relative "../outbox/broadcasts"
        ::Turbo::Broadcastable::ClassMethods.prepend(Outbox::Broadcasts::Declaring)
        ::Turbo::Streams::Broadcasts.prepend(Outbox::Broadcasts::Now)
        Turbo::AfterCommit.singleton_class.prepend(Outbox::Broadcasts::AtOnce)
      end

      def options_of(value)
        case value
        when nil, false then nil
        when true then {}
        when Hash then checked(value.transform_keys(&:to_s))
        else raise ConfigError, "config.hikyaku.outbox must be true, false or a Hash with #{OPTIONS.keys.join(" and ")}, not #{value.inspect}"
        end
      end

      def checked(options)
        options.each do |name, value|
          allowed = OPTIONS[name] or raise ConfigError, "config.hikyaku.outbox: unknown option #{name}; there are #{OPTIONS.keys.join(", ")}"
          raise ConfigError, "config.hikyaku.outbox: #{name} cannot be #{value.inspect}" unless allowed.any? { |kind| kind === value }
        end
      end
      private_class_method :extend_turbo, :options_of, :checked
    end
  end
end
