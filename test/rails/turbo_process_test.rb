# frozen_string_literal: true

require "test_helper"
require "uri"
require "support/puma_server"

# Turbo Streams where applications are served: Puma's workers render pages, answer at the door and broadcast, and the hub is a
# process beside them.
class TurboProcessTest < Minitest::Test
  HUB = "/.well-known/mercure"
  APPLICATION = <<~RUBY
    require "logger"
    require "rails"
    require "action_controller/railtie"
    require "action_view/railtie"
    require "turbo-rails"
    require "hikyaku"

    class Live < Rails::Application
      config.root = File.dirname(__dir__)
      config.eager_load = true
      config.secret_key_base = "k" * 64
      config.logger = Logger.new($stdout)
      config.hikyaku.resource_identifier = "http://127.0.0.1:PORT/.well-known/mercure"
      config.hikyaku.turbo = true
    end

    class ApplicationController < ActionController::Base
    end

    class RoomsController < ApplicationController
      def show = render(inline: "<%= turbo_stream_from 'room' %><p><%= Process.pid %></p>")

      def say
        mine = params.fetch(:worker, Process.pid).to_i == Process.pid
        Turbo::StreamsChannel.broadcast_append_to("room", target: "said", html: params[:text]) if mine
        render plain: mine
      end
    end

    Live.initialize!
    Live.routes.draw do
      hikyaku
      get "/room", to: "rooms#show"
      get "/say", to: "rooms#say"
    end
  RUBY
  # As much of an application as `plugin :hikyaku` looks for.
  FILES = {"config/environment.rb" => APPLICATION, "bin/rails" => "#!/usr/bin/env ruby\n",
           "config.ru" => "require_relative 'config/environment'\nrun Live"}.freeze

  def teardown
    @stream&.close
    @puma&.stop
  end

  test "a page that one worker renders is caught up with what another broadcasts before it connects" do
    @puma = PumaServer.new("", workers: 2, files: FILES, env: {"RAILS_ENV" => "production"})
    @puma.get("/say?text=before")
    element = page(@puma.workers.first)
    refute_nil element["cursor"], @puma.log
    @puma.await("the other worker") { @puma.get("/say?text=between&worker=#{@puma.workers.last}") == "true" }
    answer = JSON.parse(knock(element).body)
    @stream = @puma.client.stream("GET", "#{answer["hub"].sub(/.*:\d+/, "")}?#{URI.encode_www_form(match: answer["topics"].values, last_event_id: element["cursor"])}",
      headers: {"authorization" => "Bearer #{answer["token"]}"})
    assert_match(/<template>between</, @stream.next.data)
    @puma.get("/say?text=after")
    assert_match(/<template>after</, @stream.next.data)
  end

  private

  # @return [Hash] of the element in a page that this worker has made
  def page(worker)
    body = @puma.await("a page of worker #{worker}") do
      page = @puma.client.request("GET", "/room", headers: {"accept" => "text/html"}).body
      page if page.include?("<p>#{worker}</p>")
    end
    body[/<hikyaku-stream-source[^>]*>/].scan(/([a-z-]+)="([^"]*)"/).to_h
  end

  def knock(element)
    @puma.client.request("POST", element["src"], headers: {"content-type" => "application/json"}, body: JSON.generate(names: [element["signed-stream-name"]]))
  end
end
