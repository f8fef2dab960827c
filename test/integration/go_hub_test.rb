# frozen_string_literal: true

require "support/integration"

# `hikyaku serve` in the place of the Go hub, with nothing but the variables of its compose files.
class Integration::GoHubTest < Integration::Test
  include AccessTokens

  SECRET = "a secret of the compose file, long enough"
  PATH = "/.well-known/mercure"
  DIRECTIVES = "cors_origins http://127.0.0.1:8000\nanonymous\nsubscriptions\nprotocol_version_compatibility 8\n"

  %w[c ruby].each do |engine|
    test "Symfony's compose file serves Symfony's tokens, pages and API, with the engine #{engine}" do
      client, process = serve("HIKYAKU_ENGINE" => engine, "MERCURE_EXTRA_DIRECTIVES" => DIRECTIVES, "MERCURE_JWT_SECRET" => SECRET, "MERCURE_SOMETHING" => SECRET)
      origin = {"origin" => "http://127.0.0.1:8000"}
      stream = ending(client.stream("GET", "#{PATH}?topic=https://example.com/1", headers: origin))
      assert_equal [200, "http://127.0.0.1:8000"], [stream.status, stream["access-control-allow-origin"]]
      token = JWT.encode({mercure: {publish: ["*"]}}, SECRET, "HS256")
      response = client.request("POST", PATH, headers: {"authorization" => "Bearer #{token}", "content-type" => "application/x-www-form-urlencoded"}, body: "topic=https://example.com/1&data=on")
      assert_equal 200, response.status, response.body
      assert_equal "on", stream.next.data
      assert_equal 401, client.request("GET", "#{PATH}/subscriptions").status
      assert_includes process.errors, "MERCURE_SOMETHING is not a setting, and is not read"
      assert_includes process.errors, "MERCURE_JWT_SECRET is for applications"
      refute_includes process.errors, SECRET
    end
  end

  test "a transport that is not there ends the start with code 2 and one line" do
    process = start("MERCURE_TRANSPORT_URL" => "redis://:#{SECRET}@redis")
    assert_equal 2, process.status.exitstatus
    assert_equal 1, process.errors.lines.size
    assert_includes process.errors, "MERCURE_TRANSPORT_URL: the transport redis"
    refute_includes process.errors, SECRET
  end

  private

  def start(env) = run_client(*Integration::HIKYAKU, "serve", env: {"MERCURE_PUBLISHER_JWT_KEY" => SECRET, "MERCURE_SUBSCRIBER_JWT_KEY" => SECRET}.merge(env))

  def serve(env)
    port = FreePort.pick
    process = start({"SERVER_NAME" => "localhost, http://localhost:#{port}"}.merge(env))
    client = HttpClient.new(port)
    eventually("the hub") { answers?(client) }
    [client, process]
  end

  def answers?(client)
    client.request("GET", "/healthz").status == 200
  rescue SystemCallError
    false
  end
end
