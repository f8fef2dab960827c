# frozen_string_literal: true

namespace :hikyaku do
  desc "Run the hub of config.hikyaku.hub as a process of its own, with the application's keys and settings"
  task hub: :environment do
    require "hikyaku/railtie/standalone"
    exit Hikyaku::Railtie::Standalone.new(Hikyaku::Railtie.mount.settings).run
  end
end
