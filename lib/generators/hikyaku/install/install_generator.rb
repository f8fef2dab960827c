# frozen_string_literal: true

require "rails/generators"
require "rails/generators/base"

module Hikyaku
  # What `bin/rails generate` can make.
  module Generators
    # `bin/rails generate hikyaku:install`. Harmless when repeated: what is there is left as it is.
    class InstallGenerator < ::Rails::Generators::Base
      source_root File.expand_path("templates", __dir__)
      desc "Adds a Mercure hub: config/initializers/hikyaku.rb and a route."

      def create_initializer
        copy_file "hikyaku.rb.tt", "config/initializers/hikyaku.rb", skip: true
      end

      def add_route
        return say_status(:identical, "route hikyaku", :blue) if File.foreach(File.join(destination_root, "config/routes.rb")).any?(/^\s*hikyaku\b/)
        route "hikyaku"
      end

      def show_hints
        say File.read(File.join(self.class.source_root, "HINTS"))
      end
    end
  end
end
