# frozen_string_literal: true

require_relative "boot"

require "rails"
require "action_controller/railtie"
require "action_view/railtie"
require "hikyaku" # an application of its own says Bundler.require(*Rails.groups) here
require_relative "../lib/shop"

module Bookshop
  # A bookshop whose shelves, door and till are seen live on every screen.
  class Application < Rails::Application
    config.load_defaults 7.2
    config.eager_load = Rails.env.production?
    config.enable_reloading = !Rails.env.production?
    config.consider_all_requests_local = Rails.env.local?

    # Somebody is always coming and going, in a thread of the server.
    server { Shop.open_door }
  end
end
