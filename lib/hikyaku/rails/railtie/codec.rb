# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # `config.hikyaku.codec`: controllers answer JSON or MessagePack, as the client asks.
    #
    #     config.hikyaku.codec = true           # the format :msgpack (and :mpac), `render msgpack:`, negotiation, entity tags, 406
    #     config.hikyaku.codec_params = true    # bodies of requests in MessagePack become params
    #     config.hikyaku.codec_params = {max_bytes: 1_000_000, max_depth: 20, max_items: 10_000}
    module CodecGlue
      NAME = :msgpack
      # One type with two names: `format.mpac` and `/items.mpac` are `format.msgpack` and `/items.msgpack`.
      ALIAS = :mpac
      private_constant :ALIAS

      module_function

      def settle(settings)
        on = flag(settings.codec)
        limits = limits_of(settings.codec_params)
        raise ConfigError, "config.hikyaku.codec_params needs config.hikyaku.codec = true" if limits && !on
        return unless on
        load_parts
        register
        install
        read_bodies(limits) if limits
      end

      def mime = ::Mime[NAME]

      def load_parts
        require_relative "../../codec"
        require_relative "../../codec/rack/body"
        require_relative "../../codec/rack/representation"
        require_relative "codec/controller"
        require_relative "codec/failures"
        require_relative "codec/fallback"
        require_relative "codec/negotiation"
        require_relative "codec/params"
      end

      # An application that had a type of this name has this one from now on.
      def register
        format = Codec[NAME]
        [NAME, ALIAS].each { |name| ::Mime::Type.unregister(name) if ::Mime[name] }
        ::Mime::Type.register(format.media_type, NAME, format.media_types - [format.media_type], [ALIAS.to_s])
        # `format.mpac`: by itself Rails knows types by their first name.
        require "abstract_controller/collector"
        AbstractController::Collector.generate_method_for_mime(ALIAS)
      end

      def install
        ActiveSupport.on_load(:action_dispatch_request) { prepend Negotiation }
        ActiveSupport.on_load(:action_view) { ActionView::LookupContext.prepend(Fallback) }
        ActiveSupport.on_load(:action_controller) do
          [NAME, ALIAS].each { |name| ActionController::Renderers.add(name) { |object, options| hikyaku_packed(object, options) } }
          include Controller
        end
        ActionDispatch::PublicExceptions.prepend(Failures::Public)
        ActionDispatch::DebugExceptions.prepend(Failures::Debug)
      end

      def read_bodies(limits)
        params = Params.new(**limits)
        ActiveSupport.on_load(:action_dispatch_request) { prepend Params::Unreadable }
        ActiveSupport.on_load(:action_dispatch_request) { self.parameter_parsers = parameter_parsers.merge(NAME => params) }
        return unless ::Rails.application.config.action_controller.wrap_parameters_by_default
        ActiveSupport.on_load(:action_controller) { wrap_parameters format: [:json, NAME] }
      end

      def flag(value)
        return !!value if [nil, true, false].include?(value)
        raise ConfigError, "config.hikyaku.codec must be true or false, not #{value.inspect}"
      end

      def limits_of(value)
        case value
        when nil, false then nil
        when true then {}
        when Hash then checked(value.transform_keys(&:to_sym))
        else raise ConfigError, "config.hikyaku.codec_params must be true, false or a Hash with #{LIMITS.join(", ")}, not #{value.inspect}"
        end
      end

      def checked(limits)
        limits.each do |name, value|
          raise ConfigError, "config.hikyaku.codec_params: unknown limit #{name}; there are #{LIMITS.join(", ")}" unless LIMITS.include?(name)
          most = (name == :max_depth) ? MOST_DEPTH : nil
          next if value.is_a?(Integer) && (1..most).cover?(value)
          raise ConfigError, "config.hikyaku.codec_params: #{name} must be a whole number from 1#{" to #{most}" if most}, not #{value.inspect}"
        end
      end

      LIMITS = %i[max_bytes max_depth max_items].freeze
      # As deep as the codec reads at all.
      MOST_DEPTH = 500
      private_constant :LIMITS, :MOST_DEPTH
      private_class_method :load_parts, :register, :install, :read_bodies, :flag, :limits_of, :checked
    end
  end
end
