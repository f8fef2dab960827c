# frozen_string_literal: true

module Hikyaku
  class Railtie < ::Rails::Railtie
    module CodecGlue
      # Whether `render json:` in a controller is what Rails makes of it. Serialisers such as active_model_serializers put themselves before it, and leave
      # attributes out: then what it says is packed, and no object behind it.
      module Renderer
        # What `render json:` goes through, and which may be overridden.
        METHODS = %i[_render_with_renderer_json _render_to_body_with_renderer render_to_body _normalize_options].freeze
        GEMS = %w[actionpack actionview].freeze
        # What writes as as_json says.
        ENCODERS = /\A(?:ActiveSupport::JSON::|Oj::Rails::)/
        # Where Controller is.
        OURS = "#{__dir__}/"
        private_constant :METHODS, :GEMS, :ENCODERS, :OURS

        class << self
          # Asked each time: a gem may be loaded late, and a renderer be replaced.
          def rails?(controller)
            ENCODERS.match?(ActiveSupport.json_encoder.name.to_s) && METHODS.all? { |name| from_rails?(controller.method(name)) }
          rescue NameError
            false
          end

          # Rails 8.1 has another, which is as quick as ours.
          def slow?(controller) = ActiveSupport.json_encoder == ActiveSupport::JSON::Encoding::JSONGemEncoder && rails?(controller)

          private

          # Somebody's method may call that of Rails, and may stand between two of them.
          def from_rails?(method)
            while method
              return false unless method.source_location&.first&.start_with?(*folders)
              method = method.super_method
            end
            true
          end

          # A gem may be in a folder that goes by two names.
          def folders
            @folders ||= Gem.loaded_specs.values_at(*GEMS).compact.flat_map { |gem| [gem.full_gem_path, File.realpath(gem.full_gem_path)] }.uniq.map { |path| "#{path}/lib/" }.push(OURS).freeze
          end
        end
      end
    end
  end
end
