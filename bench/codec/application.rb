# frozen_string_literal: true

# One Rails application that answers with the same objects as JSON or MessagePack, and compresses what it answers in one of several
# ways. The environment says which; all else is the same.
#
#     BENCH_FORMAT   json      `render json:` as Rails has it, without Hikyaku's codec
#                    oj        the same with the gem oj
#                    mpac      MessagePack as the paper had it: `to_msgpack`
#                    msgpack   `render msgpack:` of Hikyaku's codec
#     BENCH_WAY      none          it does not compress
#                    application   as the paper had it: in an `after_action`, every response anew
#                    middleware    Hikyaku::Codec::Rack::Compression, every response anew
#                    cache         the same with its cache

ENV["RAILS_ENV"] = "production"

require "json"
require "logger"
require "securerandom"
require "rails"
require "action_controller/railtie"
require "hikyaku"
require "hikyaku/codec/rack/compression"
require_relative "payloads"

class AnswersApplication < Rails::Application
  FORMAT = ENV.fetch("BENCH_FORMAT")
  WAY = ENV.fetch("BENCH_WAY")
  CACHE_BYTES = {"middleware" => 0, "cache" => 8 << 20}.freeze

  config.root = ENV.fetch("BENCH_FOLDER")
  config.load_defaults 7.2
  config.eager_load = true
  config.secret_key_base = SecureRandom.hex(64)
  config.logger = Logger.new($stderr, level: :warn)
  config.log_level = :warn
  config.hikyaku.codec = (FORMAT == "msgpack")

  if CACHE_BYTES.key?(WAY)
    config.middleware.insert_before Rack::ConditionalGet, Hikyaku::Codec::Rack::Compression, cache_bytes: CACHE_BYTES.fetch(WAY),
      **JSON.parse(ENV.fetch("BENCH_SETTINGS"), symbolize_names: true)
  end
end

Rails.application.initialize!

case AnswersApplication::FORMAT
when "oj"
  require "oj"
  Oj.optimize_rails
when "mpac"
  require "msgpack"
  Mime::Type.register("application/x-mpac", :mpac)
end

class AnswersController < ActionController::Base
  PAYLOADS = Bench::Payloads.names.to_h { |name| [name, Bench::Payloads.fetch(name)] }.freeze

  after_action :compress_response if AnswersApplication::WAY == "application"

  def show
    payload = PAYLOADS.fetch(params[:payload])
    respond_to do |format|
      format.json { render json: payload }
      format.msgpack { render msgpack: payload } if AnswersApplication::FORMAT == "msgpack"
      format.mpac { render body: payload.to_msgpack, content_type: "application/x-mpac" } if AnswersApplication::FORMAT == "mpac"
    end
  end

  private

  # As the paper has it, but for the field, without which no client would know.
  def compress_response
    response.body = ActiveSupport::Gzip.compress(response.body)
    response.headers["Content-Encoding"] = "gzip"
  end
end

Rails.application.routes.draw { get "/:payload", to: "answers#show" }
