# frozen_string_literal: true

# A Rails application in the process of the tests, in the test environment. Not to be loaded beside other tests: Rails
# changes Ruby's own classes, and from then on `Hikyaku.publish` is recorded.
ENV["RAILS_ENV"] = "test"

require "logger"
require "stringio"
require "tmpdir"
require "rails"
require "action_controller/railtie"
require "action_view/railtie"
require "hikyaku"

class RailsApplication < Rails::Application
  FOLDER = Dir.mktmpdir("hikyaku-application")
  LOG = StringIO.new

  config.root = FOLDER
  config.load_defaults 7.2
  config.eager_load = false
  config.consider_all_requests_local = false
  config.action_dispatch.show_exceptions = :none
  config.action_controller.allow_forgery_protection = false
  config.secret_key_base = "s" * 64
  config.hosts = ["shop.example.com", "localhost"]
  config.logger = Logger.new(LOG, level: :debug)
  config.hikyaku.anonymous = true
end
at_exit { FileUtils.rm_rf(RailsApplication::FOLDER) }

RailsApplication.initialize!

class BooksController < ActionController::Base
  def show
    hikyaku_discovery "http://shop.example.com/books/1", type: "book"
    render inline: "<%= hikyaku_url(match: '/books/1', match_urlpattern: ['/a/:b', '/c'], last_event_id: '#1&2') %>"
  end

  def enter
    hikyaku_authorize subscribe: "/takings", **{expires_in: params[:expires_in]&.to_i, subject: params[:subject]}.compact
    head :no_content
  end

  def leave
    hikyaku_unauthorize
    head :no_content
  end

  def too_much
    hikyaku_authorize subscribe: Array.new(200) { |n| "/books/#{n}" }
  end

  private

  def hikyaku_subject = "user-7"
end

RailsApplication.routes.draw do
  hikyaku
  get "/books/1", to: "books#show"
  post "/enter", to: "books#enter"
  post "/leave", to: "books#leave"
  post "/too_much", to: "books#too_much"
end
