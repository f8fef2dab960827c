# frozen_string_literal: true

require "test_helper"
require "support/rails_settings"
require "rack/mock"

# What the application answers when the hub is in another process.
class MountTest < Minitest::Test
  include RailsSettings

  PATH = "/.well-known/mercure"

  test "a request is sent to where clients find the hub, with its query" do
    each_method do |method|
      response = request(method, "#{PATH}?match=%2Fbooks", hub: "unix:/run/hub.sock", resource_identifier: "https://hub.example.com/live")
      assert_equal [307, "https://hub.example.com/live?match=%2Fbooks"], [response.status, response["location"]]
    end
    response = request("GET", "#{PATH}/subscriptions", hub: "unix:/run/hub.sock", resource_identifier: "https://hub.example.com#{PATH}")
    assert_equal "https://hub.example.com#{PATH}/subscriptions", response["location"]
    response = request("GET", "/.well-known/oauth-protected-resource/live", hub: "unix:/run/hub.sock", resource_identifier: "https://hub.example.com/live")
    assert_equal "https://hub.example.com/.well-known/oauth-protected-resource/live", response["location"]
  end

  test "where the hub is not known to clients, the answer says what to set" do
    response = request("GET", "#{PATH}?match=x", hub: "unix:/run/hub.sock")
    assert_equal [404, "application/problem+json"], [response.status, response["content-type"]]
    assert_match(/config\.hikyaku\.resource_identifier/, response.body)
  end

  test "a request that should not have come here is not sent in a circle" do
    response = request("GET", "#{PATH}?match=x", hub: "unix:/run/hub.sock", resource_identifier: "https://shop.example.com#{PATH}")
    assert_equal 404, response.status
    assert_match(%r{the server in front must send requests for #{PATH} to it}o, response.body)
  end

  test "where Puma runs the hub beside its workers, requests are for that, and no worker holds one" do
    Dir.mktmpdir do |folder|
      ENV["HIKYAKU_SIDECAR"] = folder
      in_environment("production") do
        mount = Hikyaku::Railtie::Mount.new(settings)
        env = Rack::MockRequest.env_for(PATH, "rack.multiprocess" => true)
        refute mount.scattered?(env)
        mount.open
        assert_nil Hikyaku.web
        assert_equal [503, "1"], mount.call(env).then { |status, headers, _| [status, headers["retry-after"]] }
      end
      response = request("GET", PATH, hub: "unix:/run/hub.sock", resource_identifier: "https://hub.example.com/live")
      assert_equal 307, response.status, "what is set counts more"
    ensure
      ENV.delete("HIKYAKU_SIDECAR")
    end
  end

  test "a server without a hub raises in development, too: there it is a fault" do
    in_environment("development") do
      mount = Hikyaku::Railtie::Mount.new(settings)
      assert_equal :log, mount.without_hub
      mount.open
      assert_equal :raise, mount.without_hub
    end
  end

  private

  def each_method(&block) = %w[GET HEAD QUERY POST].each(&block)

  def request(method, path, **settings)
    in_environment("production") do
      mount = Hikyaku::Railtie::Mount.new(settings(**settings))
      Rack::MockResponse[*mount.call(Rack::MockRequest.env_for(path, :method => method, "HTTP_HOST" => "shop.example.com"))]
    end
  end
end
