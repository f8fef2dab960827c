# frozen_string_literal: true

require "puma/dsl"
require "puma/plugin"
require_relative "../../hikyaku/server/sidecar/puma_hooks"

# The server; here its language for puma.rb learns a word.
module Puma
  # What puma.rb is written in.
  class DSL
    # Settings of the hub that `plugin :hikyaku` runs; that line must stand before. Each is a setting of the hub's
    # configuration (docs/configuration.md).
    #
    #     plugin :hikyaku
    #     hikyaku publisher_key: ENV["PUBLISHER_KEY"], subscriber_key: ENV["SUBSCRIBER_KEY"], anonymous: true
    def hikyaku(**settings)
      @options[:hikyaku] = Hikyaku::Server::Sidecar::Settings.new(**settings)
    end
  end
end

# Runs the hub as a process beside Puma's workers: see Hikyaku::Server::Sidecar and docs/guides/puma.md.
Puma::Plugin.create do
  # Called by Puma before it loads the application.
  def start(launcher) = Hikyaku::Server::Sidecar::PumaHooks.new(launcher).start
end
