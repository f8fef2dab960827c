# frozen_string_literal: true

module Hikyaku
  class Railtie < ::Rails::Railtie
    # For config/routes.rb.
    module Routing
      NAME = :hikyaku_hub

      # Serves the hub at `config.hikyaku.path`, and its metadata (RFC 9728); with `config.hikyaku.turbo`, also what gives
      # pages their tokens, at `config.hikyaku.turbo_path`; with `config.hikyaku.presence`, also what tells them who is here.
      #
      #     Rails.application.routes.draw do
      #       hikyaku
      #     end
      def hikyaku
        raise ArgumentError, "hikyaku stands outside of scope and namespace; to move it, set config.hikyaku.path" if @scope[:path].present?
        hub = Railtie.mount
        match hub.metadata_path, to: hub, via: :all, as: :hikyaku_metadata, format: false
        mount hub, at: hub.settings.route_path, as: NAME
        turbo = hub.settings.turbo
        match turbo.path, to: Turbo::Door.new(hub), via: :all, as: :hikyaku_streams, format: false if turbo.on?
        presence = hub.settings.presence
        match presence.path, to: Presence::Window.new, via: :all, as: :hikyaku_presence, format: false if presence.on?
      end
    end
  end
end
