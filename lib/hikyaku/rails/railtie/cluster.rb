# frozen_string_literal: true

module Hikyaku
  class Railtie < ::Rails::Railtie
    # Knows whether Puma is about to serve, or serves, with several processes.
    #
    # `puma` has read its configuration when it loads config.ru: the answer is there. `rails server` loads config.ru
    # first: then the cluster itself is stopped when it is about to run.
    module Cluster
      # Put before Puma::Cluster#run.
      module Refusal
        class << self
          attr_accessor :reaction
        end

        def run
          Refusal.reaction&.call
          super
        end
      end

      module_function

      # Stops the server when it has several processes: now, or as soon as that is known.
      def refuse(reason)
        config = ::Puma.cli_config if defined?(::Puma.cli_config)
        if config.nil?
          guard(reason) if defined?(::Puma) || defined?(::Rackup)
        elsif config.options[:workers].to_i > 0
          give_up(reason) unless config.options[:preload_app]
          fail!(reason)
        end
      end

      def preloading?
        options = (::Puma.cli_config if defined?(::Puma.cli_config))&.options
        !options.nil? && options[:workers].to_i > 0 && !!options[:preload_app]
      end

      # Without a backtrace: the sentence says all. `rails server --daemon` has nowhere else to say it than the log.
      def fail!(reason)
        ::Rails.logger&.error("Hikyaku: #{reason}") unless ActiveSupport::Logger.logger_outputs_to?(::Rails.logger, $stderr, $stdout)
        raise(ConfigError, reason, [])
      end

      # The application was not loaded before the fork: this is a worker, which Puma would start again for ever.
      def give_up(reason)
        warn "Hikyaku: #{reason}"
        Process.kill(:TERM, Process.ppid)
      end

      def guard(reason)
        require "puma"
        require "puma/configuration"
        require "puma/launcher"
        # By then Puma's plugins have started.
        Refusal.reaction = -> { fail!(reason) unless Server::Sidecar::Folder.named }
        ::Puma::Cluster.prepend(Refusal)
      end
      private_class_method :fail!, :give_up, :guard
    end
  end
end
