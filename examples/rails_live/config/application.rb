# frozen_string_literal: true

require_relative "boot"

require "rails"
require "active_job/railtie"
require "active_record/railtie"
require "action_controller/railtie"
require "action_view/railtie"
require "rails/test_unit/railtie"
# An application of its own says Bundler.require(*Rails.groups) here.
require "hikyaku"
require "importmap-rails"
require "propshaft"
require "turbo-rails"
require_relative "../lib/market"

module RailsLive
  # Pages that change by themselves: a chat, a stock ticker, the progress of a job, the words of a language model. There is no
  # Action Cable in it.
  class Application < Rails::Application
    config.load_defaults 7.2
    config.eager_load = Rails.env.production?
    config.enable_reloading = Rails.env.development?
    config.consider_all_requests_local = Rails.env.local?
    config.action_controller.allow_forgery_protection = false if Rails.env.test?

    # Jobs run in threads of the server. What is not done when it stops is lost: a real application has a queue.
    config.active_job.queue_adapter = Rails.env.test? ? :test : :async

    server { Market.open }
  end
end
