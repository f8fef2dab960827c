# frozen_string_literal: true

module Hikyaku
  class Railtie < ::Rails::Railtie
    # Knows whether Puma is about to serve, or serves, with several processes.
    #
    # `puma` has read its configuration when it loads config.ru: the answer is there. `rails server` loads config.ru
    # first: then the cluster itself is stopped when it is about to run.
    #
    # @api private
    module Cluster
      # Put before Puma::Cluster#run.
      module Refusal
        class << self
          # @return [#call, nil]
          attr_accessor :reaction
        end

        # @return [void]
        def run
          Refusal.reaction&.call
          super
        end
      end

      module_function

      # Runs the block, which raises, when there are several processes: now, or as soon as that is known.
      #
      # @return [void]
      def refuse(&reaction)
        config = ::Puma.cli_config if defined?(::Puma.cli_config)
        if config.nil?
          guard(reaction) if defined?(::Puma::Const)
        elsif config.options[:workers].to_i > 0
          # Not preloaded: this is a worker, which Puma would start again for ever.
          Process.kill(:TERM, Process.ppid) unless config.options[:preload_app]
          reaction.call
        end
      end

      def guard(reaction)
        require "puma"
        require "puma/configuration"
        require "puma/launcher"
        Refusal.reaction = reaction
        ::Puma::Cluster.prepend(Refusal)
      end
      private_class_method :guard
    end
  end
end
