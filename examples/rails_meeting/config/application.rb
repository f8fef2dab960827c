# frozen_string_literal: true

require_relative "boot"

require "rails"
require "active_job/railtie"
require "action_controller/railtie"
require "action_view/railtie"
# An application of its own says Bundler.require(*Rails.groups) here.
require "hikyaku"
require "importmap-rails"
require "propshaft"
require_relative "../lib/meeting"

module RailsMeeting
  # Pages that send by POST and receive from the hub: typing indicators, cursors, messages, requests that a job answers.
  class Application < Rails::Application
    config.load_defaults 7.2
    config.eager_load = Rails.env.production?
    config.enable_reloading = Rails.env.development?
    config.consider_all_requests_local = Rails.env.local?

    # Both live in the process of the server. A real application has a queue, and a cache that all processes share.
    config.active_job.queue_adapter = :async
    config.cache_store = :memory_store
  end
end
