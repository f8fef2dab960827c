# frozen_string_literal: true

Rails.application.configure do
  config.hikyaku.turbo = true
  config.hikyaku.hub = ENV["HIKYAKU_HUB"]       # with several processes: where the hub is
  config.hikyaku.engine = ENV["HIKYAKU_ENGINE"] # "ruby" where there is no compiler
end

# Asked when a page connects, and whenever its token is renewed: who has signed out receives nothing more.
Hikyaku::Turbo.authorize { |stream_name, _request| may_follow?(stream_name) }
