# frozen_string_literal: true

# One Rails application, as small as it can be, that pushes with Action Cable or with Hikyaku mounted in it. The environment
# says which; the middleware, the action that publishes, and Puma are the same.

ENV["RAILS_ENV"] = "production"

require "json"
require "logger"
require "securerandom"
require "rails"
require "action_controller/railtie"
require "action_cable/engine"
require "hikyaku"
require_relative "within"

class NewsApplication < Rails::Application
  config.root = ENV.fetch("BENCH_FOLDER")
  config.load_defaults 7.2
  config.eager_load = true
  config.secret_key_base = SecureRandom.hex(64)
  config.logger = Logger.new($stderr, level: :warn)
  config.log_level = :warn

  config.action_cable.cable = ENV["BENCH_REDIS"] ? {"adapter" => "redis", "url" => ENV["BENCH_REDIS"]} : {"adapter" => "async"}
  # Its clients are programs, which send no Origin.
  config.action_cable.disable_request_forgery_protection = true

  JSON.parse(ENV.fetch("BENCH_HUB", "{}")).each { |name, value| config.hikyaku[name.to_sym] = value }
end

module News
  PUBLISH = {
    "cable" => ->(topic, text) { ActionCable.server.broadcast("news:#{topic}", text) },
    "hikyaku" => ->(topic, text) { Hikyaku.publish("https://example.com/t/#{topic}", text) }
  }.fetch(ENV.fetch("BENCH_PUSH"))

  def self.publish(topic, text) = PUBLISH.call(topic, text)
end

# Rails settles what all controllers have: those that were there before would have it on top of what they say.
Rails.application.initialize!

class NewsChannel < ActionCable::Channel::Base
  def subscribed = stream_from("news:#{params[:topic]}")

  def speak(data) = News.publish(params[:topic], data["text"])
end

class NewsController < ActionController::Base
  skip_forgery_protection

  def create
    News.publish(params[:topic], params[:data])
    head :no_content
  end
end

Rails.application.routes.draw do
  hikyaku if ENV["BENCH_PUSH"] == "hikyaku"
  post "/publish", to: "news#create"
end

port = Within.open(ENV.fetch("BENCH_HOST")) { |topic, text| News.publish(topic, text) }
File.write(Rails.root.join("within"), port)
