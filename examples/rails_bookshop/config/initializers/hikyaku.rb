# frozen_string_literal: true

Rails.application.configure do
  config.hikyaku.anonymous = true         # whoever looks into the window sees the shelves
  config.hikyaku.hub = ENV["HIKYAKU_HUB"] # with several processes: where the hub is
end
