# frozen_string_literal: true

require_relative "rails_application"

# Settings of applications that are not there.
module RailsSettings
  Settings = Hikyaku::Railtie::Settings

  # As much of an application as Settings looks at.
  class Application
    MAILER = Struct.new(:default_url_options).new

    attr_reader :config, :credentials, :routes

    def initialize(settings: {}, credentials: {}, url: nil, **config)
      hikyaku = ActiveSupport::OrderedOptions.new.merge!(settings)
      @config = ActiveSupport::OrderedOptions.new.merge!(hikyaku: hikyaku, hosts: [], action_mailer: MAILER, **config)
      @credentials = credentials
      @routes = Struct.new(:default_url_options, :named_routes).new(url || {}, {})
    end

    def key_generator = ActiveSupport::KeyGenerator.new("secret", iterations: 1)
  end

  def settings(credentials: {}, **settings) = Settings.new(Application.new(settings: settings, credentials: credentials))

  def in_environment(name)
    before = Rails.env
    Rails.env = name
    yield
  ensure
    Rails.env = before
  end
end
