# frozen_string_literal: true

module Hikyaku
  class Railtie < ::Rails::Railtie
    # The client for browsers, app/assets/javascripts/hikyaku.js, where the application's asset pipeline (Propshaft or Sprockets) finds
    # it, and in its import map as "hikyaku". What is not there is not missed.
    module Assets
      ROOT = File.expand_path("../../../../.", __dir__)
      FOLDER = File.join(ROOT, "app/assets/javascripts")
      PINS = File.join(ROOT, "config/importmap.rb")
      private_constant :ROOT

      module_function

      def offer(config)
        return unless config.respond_to?(:assets)
        config.assets.paths << FOLDER
        # Of Sprockets; Propshaft takes everything.
        config.assets.precompile += Dir[File.join(FOLDER, "*.js")].map { |file| File.basename(file) }
      end

      # Before those of the application, which may say otherwise.
      def pin(config)
        config.importmap.paths.unshift(Pathname.new(PINS)) if config.respond_to?(:importmap)
      end
    end

    initializer("hikyaku.importmap", before: "importmap") { |app| Assets.pin(app.config) }

    initializer("hikyaku.assets") { |app| Assets.offer(app.config) }
  end
end
