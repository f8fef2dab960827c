# frozen_string_literal: true

# A Rails application with one page that says who is on it, for test/system/presence_test.rb: `puma presence_application.ru` in a
# process of its own. Whoever asks for the page as ?user=NAME is that user from then on.
require "logger"
require "rails"
require "action_controller/railtie"
require "action_view/railtie"
require "turbo-rails"
require "hikyaku"

class PresenceApplication < Rails::Application
  config.root = __dir__
  config.load_defaults 7.1
  config.eager_load = false
  config.secret_key_base = "s" * 64
  config.logger = Logger.new($stderr)
  config.log_level = :warn
  config.hikyaku.engine = ENV.fetch("HIKYAKU_TEST_ENGINE", "c")
  config.hikyaku.resource_identifier = ENV.fetch("HUB_URL")
  config.hikyaku.turbo = true
  config.hikyaku.presence = true
  config.hikyaku.presence_grace = ENV.fetch("GRACE").to_f
end

class ApplicationController < ActionController::Base
  private

  def hikyaku_subject = session[:user]

  def hikyaku_payload = {id: session[:user], name: session[:user].upcase}
end

class RoomsController < ApplicationController
  PAGE = <<~ERB
    <!doctype html>
    <title>Room</title>
    <script type="importmap">{"imports": {"hikyaku": "/hikyaku.js", "hikyaku-presence": "/hikyaku-presence.js"}}</script>
    <script type="module">
      window.news = [];
      const names = (users) => users.map(({name}) => name).sort().join(" ");
      addEventListener("hikyaku:presence", ({detail: {here, joined, left}}) => {
        document.querySelector("#here").textContent = names(here);
        window.news.push(`+${names(joined)} -${names(left)}`);
      });
      await import("hikyaku-presence");
    </script>
    <%= hikyaku_presence_tag "room", params[:id], id: "presence" %>
    <p id="here"></p>
    <p id="rendered"><%= Hikyaku::Presence.here("room", params[:id]).map { |user| user["name"] }.sort.join(" ") %></p>
  ERB

  def show
    session[:user] = params[:user] if params[:user]
    render inline: PAGE
  end
end

SCRIPTS = File.expand_path("../../app/assets/javascripts", __dir__)

PresenceApplication.initialize!
PresenceApplication.routes.draw do
  hikyaku
  get "/rooms/:id", to: "rooms#show"
  %w[hikyaku.js hikyaku-presence.js].each do |name|
    get "/#{name}", to: ->(_env) { [200, {"content-type" => "text/javascript"}, [File.read(File.join(SCRIPTS, name))]] }, format: false
  end
  get "/up", to: ->(_env) { [200, {}, ["up"]] }
end
