# frozen_string_literal: true

# A Rails application in the process of the tests, in the test environment, with Turbo Streams through the hub; with Action
# Cable beside it if HIKYAKU_TEST_CABLE is 1. Not to be loaded beside other tests: Rails changes Ruby's own classes, and
# from then on `Hikyaku.publish` is recorded.
ENV["RAILS_ENV"] = "test"

require "fileutils"
require "logger"
require "stringio"
require "tmpdir"
require "rails"
require "action_controller/railtie"
require "action_view/railtie"
require "active_job/railtie"
require "active_record/railtie"
require "action_cable/engine" if ENV["HIKYAKU_TEST_CABLE"] == "1"
require "turbo-rails"
require "hikyaku"

class RailsApplication < Rails::Application
  FOLDER = Dir.mktmpdir("hikyaku-application")
  LOG = StringIO.new
  # What Rails looks for in files.
  FILES = {
    "config/database.yml" => "test: {adapter: sqlite3, database: #{FOLDER}/test.sqlite3, timeout: 5000}\n",
    "config/cable.yml" => "test: {adapter: test}\n",
    "app/views/messages/_message.html.erb" => %(<p id="<%= dom_id(message) %>"><%= message.body %></p>\n),
    "app/views/messages/_shout.html.erb" => %(<b id="<%= dom_id(message) %>"><%= message.body.upcase %></b>\n),
    "app/views/messages/_news.turbo_stream.erb" => %(<%= turbo_stream.append("news") { message.body } %>\n),
    "app/views/boards/show.html.erb" => "<%= turbo_stream_from @board, **@attributes.to_h %><%= @board.messages.map(&:body).join %>\n",
    "app/views/messages/_followed.html.erb" => "<%= turbo_stream_from message %>\n"
  }.freeze
  FILES.each do |name, text|
    FileUtils.mkdir_p(File.dirname("#{FOLDER}/#{name}"))
    File.write("#{FOLDER}/#{name}", text)
  end

  config.root = FOLDER
  config.load_defaults Rails::VERSION::STRING.to_f
  config.eager_load = false
  config.consider_all_requests_local = false
  config.action_dispatch.show_exceptions = :none
  config.action_controller.allow_forgery_protection = false
  config.active_job.queue_adapter = :inline
  config.active_record.maintain_test_schema = false
  config.secret_key_base = "s" * 64
  config.hosts = ["shop.example.com", "localhost"]
  config.logger = Logger.new(LOG, level: :debug)
  config.hikyaku.anonymous = true
  config.hikyaku.turbo = true
end
# Not at_exit: Minitest's own comes after.
Minitest.after_run { FileUtils.rm_rf(RailsApplication::FOLDER) }

RailsApplication.initialize!

class BooksController < ActionController::Base
  def show
    hikyaku_discovery "http://shop.example.com/books/1", type: "book"
    render inline: "<%= hikyaku_url(match: '/books/1', match_urlpattern: ['/a/:b', '/c'], last_event_id: '#1&2') %>"
  end

  def enter
    hikyaku_authorize subscribe: "/takings", **{expires_in: params[:expires_in]&.to_i, subject: params[:subject], issued_at: params[:issued_at]&.to_f}.compact
    head :no_content
  end

  def leave
    hikyaku_unauthorize
    head :no_content
  end

  def send_back
    render json: [hikyaku_correlation]
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
  post "/send_back", to: "books#send_back"
  post "/too_much", to: "books#too_much"
  # Of test/support/turbo_application.rb.
  resources :boards, only: :show
  post "/boards/:id/messages", to: "boards#post"
  post "/session/:user", to: "application#sign_in"
end
