# frozen_string_literal: true

require "ferrum"

# Headless Chromium with an empty profile.
module Browser
  SWITCHES = %w[
    no-sandbox disable-gpu no-first-run disable-background-networking disable-component-update disable-sync disable-default-apps
  ].to_h { |name| [name, nil] }.freeze
  PROGRAMS = %w[chromium chromium-browser google-chrome].freeze

  # @param switches [Hash{String => String, nil}]
  # @yieldparam page [Ferrum::Page]
  def self.open(switches, timeout:, **options)
    program = ENV.fetch("PATH").split(":").product(PROGRAMS).map { |folder, name| File.join(folder, name) }.find { |path| File.executable?(path) }
    browser = Ferrum::Browser.new(browser_path: program, headless: true, timeout: timeout, process_timeout: 40, browser_options: SWITCHES.merge(switches), **options)
    yield browser.create_page
  ensure
    browser&.quit
  end
end
