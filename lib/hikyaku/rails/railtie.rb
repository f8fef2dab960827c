# frozen_string_literal: true

# First, so that it does not require this file in its turn.
require_relative "../../hikyaku"
require_relative "../http"
require "rails/railtie"
require_relative "railtie/assets"
require_relative "railtie/beside"
require_relative "railtie/client_log_subscriber"
require_relative "railtie/cluster"
require_relative "railtie/codec"
require_relative "railtie/daemon"
require_relative "railtie/helpers"
require_relative "railtie/instrumentation"
require_relative "railtie/local_socket"
require_relative "railtie/log_subscriber"
require_relative "railtie/middleware"
require_relative "railtie/mount"
require_relative "railtie/outbox"
require_relative "railtie/presence"
require_relative "railtie/routing"
require_relative "railtie/served"
require_relative "railtie/settings"
require_relative "railtie/spoken_warning"
require_relative "railtie/turbo_streams"
require_relative "railtie/without_hub"

module Hikyaku
  # The hub in a Rails application: `config.hikyaku`, the route `hikyaku`, helpers for controllers and views,
  # notifications, and `Hikyaku.publish` that knows where the hub is.
  #
  # Who holds the hub:
  #
  #     config.hikyaku.hub is set          nobody here: every process publishes there
  #     Puma has `plugin :hikyaku`         a process beside Puma's: workers relay and publish to it
  #     the server (config.ru), one process, with the route drawn     the server
  #     the server with several processes                             it refuses to start
  #     a job, the console, a task in development                     the server of the same application that runs
  #     the same elsewhere, or where no server runs                   none: see `config.hikyaku.without_hub`
  #     the test environment               publishes are recorded, see TestHelper
  class Railtie < ::Rails::Railtie
    config.hikyaku = ActiveSupport::OrderedOptions.new

    class << self
      attr_accessor :mount
    end

    # Before that server starts, which is before initializers run.
    Served.follow

    generators do
      require "generators/hikyaku/install/install_generator"
      require "generators/hikyaku/outbox/outbox_generator"
    end

    rake_tasks { load File.expand_path("railtie/tasks.rake", __dir__) }

    initializer "hikyaku.mount" do |app|
      Railtie.mount = Mount.new(Settings.new(app))
      Server::Sidecar::Folder.default = Server::Sidecar::Folder.path_in(app.root.to_s) if ::Rails.env.development?
      app.config.middleware.insert_before 0, Middleware, app
    end

    initializer "hikyaku.routing" do
      require "action_dispatch/routing/mapper"
      ActionDispatch::Routing::Mapper.include(Routing)
    end

    initializer "hikyaku.helpers" do
      ActiveSupport.on_load(:action_controller) do
        include Helpers

        helper_method(*Helpers::IN_VIEWS) if respond_to?(:helper_method)
      end
    end

    initializer "hikyaku.notifications" do
      Hikyaku.singleton_class.prepend(Instrumentation)
      Hikyaku.singleton_class.prepend(OutboxGlue::Storing)
      Hikyaku.singleton_class.prepend(WithoutHub)
      LogSubscriber.attach_to :hikyaku
      ClientLogSubscriber.attach_to :hikyaku_http
      HTTP.instrumenter ||= ActiveSupport::Notifications
    end

    initializer "hikyaku.tests" do
      if ::Rails.env.test?
        require_relative "../test_helper"
        TestHelper.record
        ActiveSupport.on_load(:active_support_test_case) { include TestHelper }
      end
    end

    # When config/initializers have spoken, and before the application's code is loaded.
    initializer "hikyaku.turbo", after: :load_config_initializers do
      TurboStreams.install(Railtie.mount.settings)
    end

    initializer "hikyaku.presence", after: "hikyaku.turbo" do
      PresenceGlue.settle(Railtie.mount.settings)
    end

    # Before the application's controllers are loaded.
    initializer "hikyaku.codec", after: :load_config_initializers do
      CodecGlue.settle(Railtie.mount.settings)
    end

    # Before the application's code runs, which may publish.
    initializer "hikyaku.outbox", after: :load_config_initializers do
      OutboxGlue.settle(Railtie.mount.settings)
    end

    config.after_initialize { Railtie.mount.settle }

    server do
      Railtie.mount.open
      OutboxGlue.serve
      Daemon.follow
    end
  end
end
