# frozen_string_literal: true

namespace :hikyaku do
  desc "Run the hub of config.hikyaku.hub as a process of its own, with the application's keys and settings"
  task hub: :environment do
    require "hikyaku/rails/railtie/standalone"
    exit Hikyaku::Railtie::Standalone.new(Hikyaku::Railtie.mount.settings).run
  end

  desc "Look at the hub from the outside, as its clients do, and say what to change (HIKYAKU_DOCTOR: options, as of `hikyaku doctor`)"
  task :doctor, [:url] => :environment do |_, arguments|
    require "hikyaku/rails/railtie/doctor_task"
    exit Hikyaku::Railtie::DoctorTask.run(Hikyaku::Railtie.mount.settings, arguments.url)
  end

  desc "Take the updates of the outbox to the hub, in a process of its own"
  task outbox: :environment do
    require "hikyaku/rails/railtie/outbox_task"
    Hikyaku::Railtie::OutboxTask.run
  end

  namespace :outbox do
    desc "Show how many updates wait in the outbox, and which the hub would not take"
    task show: :environment do
      require "hikyaku/rails/railtie/outbox_task"
      Hikyaku::Railtie::OutboxTask.show
    end

    desc "Try again the updates that the hub would not take"
    task retry: :environment do
      require "hikyaku/rails/railtie/outbox_task"
      Hikyaku::Railtie::OutboxTask.retry_set_aside
    end
  end
end
