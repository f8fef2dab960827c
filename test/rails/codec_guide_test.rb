# frozen_string_literal: true

require "test_helper"
require "json"
require "msgpack"
require "net/http"
require "support/rails_server"
require "support/snippets"

# What docs/guides/representations.md says to write into a Rails application works there. What the serialisers do is codec_test.rb's.
class CodecGuideTest < Minitest::Test
  FILES = Snippets.files("docs/guides/representations.md").freeze
  ROUTES = <<~RUBY
    Rails.application.routes.draw do
      resources :items, only: %i[index show create] do
        get :all, :rows, on: :collection
      end
      resources :prices, only: :index
    end
  RUBY
  # Forms of the guide have no token against forgery.
  FORGERY = "Rails.application.config.action_controller.allow_forgery_protection = false\n"
  PACKED = "application/vnd.msgpack"

  def teardown
    @server&.stop
    @folder&.remove
  end

  test "the snippets make an application that answers as the client asks" do
    assert_equal 4, FILES.size
    @folder = RailsServer::Folder.new(FILES.merge("config/routes.rb" => ROUTES, "config/initializers/forgery.rb" => FORGERY))
    @server = RailsServer.new(@folder, probe: "/items.json")
    item = {"id" => 1, "name" => "Dune", "price" => "12.5"}
    {"/items" => [item], "/items/1" => item.merge("notes" => "private"), "/items/all" => [item.merge("notes" => "private")], "/items/rows" => Array.new(1_000) { |n| {"id" => n} }}.each do |path, value|
      assert_equal [value, "application/json"], JSON.parse(get(path, "application/json").body).then { |json| [json, get(path, "application/json").content_type] }
      assert_equal [value, PACKED], [MessagePack.unpack(get(path, "application/json;q=0.5, application/msgpack").body), get(path, PACKED)["content-type"]]
      ["", ".msgpack", ".mpac"].each { |suffix| assert_equal PACKED, get("#{path}#{suffix}", PACKED)["content-type"] }
    end
    assert_equal ["406", "application/problem+json"], get("/items", "text/html").then { |answer| [answer.code, answer.content_type] }
    assert_equal ["406", "JSON or MessagePack, please\n"], get("/prices", "text/html").then { |answer| [answer.code, answer.body] }
    assert_equal({"dune" => 1250}, MessagePack.unpack(get("/prices", "*/*").body))
    created = Net::HTTP.post(URI("http://127.0.0.1:#{@server.port}/items"), MessagePack.pack("item" => {"name" => "Emma"}), "content-type" => PACKED, "host" => "localhost")
    assert_equal ["201", {"name" => "Emma"}], [created.code, JSON.parse(created.body)]
  end

  private

  def get(path, accept) = @server.get(path, {"host" => "localhost", "accept" => accept})
end
