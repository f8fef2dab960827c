# frozen_string_literal: true

Rails.application.configure do
  config.hikyaku.engine = ENV["HIKYAKU_ENGINE"] # "ruby" where there is no compiler
end
