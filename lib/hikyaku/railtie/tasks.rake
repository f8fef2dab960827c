# frozen_string_literal: true

namespace :hikyaku do
  desc "Run the hub of config.hikyaku.hub as a process of its own, with the application's keys and settings"
  task hub: :environment do
    require "hikyaku/railtie/standalone"
    exit Hikyaku::Railtie::Standalone.new(Hikyaku::Railtie.mount.settings).run
  end

  desc "Take the updates of the outbox to the hub, in a process of its own"
  task outbox: :environment do
    require "hikyaku/railtie/outbox_task"
    Hikyaku::Railtie::OutboxTask.run
  end

  namespace :outbox do
    desc "Show how many updates wait in the outbox, and which the hub would not take"
    task show: :environment do
      require "hikyaku/railtie/outbox_task"
      Hikyaku::Railtie::OutboxTask.show
    end

    desc "Try again the updates that the hub would not take"
    task retry: :environment do
      require "hikyaku/railtie/outbox_task"
      Hikyaku::Railtie::OutboxTask.retry_set_aside
    end
  end
end
