# frozen_string_literal: true

require "test_helper"
require "rbconfig"
require "tmpdir"
require "uri"
require_relative "access_tokens"
require_relative "client_process"
require_relative "free_port"
require_relative "http_client"
require_relative "running_hub"

# Tests of the hub's own process with clients that are not ours. What a test starts is ended when it is over.
module Integration
  HIKYAKU = [RbConfig.ruby, File.expand_path("../../exe/hikyaku", __dir__)].freeze
  NODE_DRIVER = File.expand_path("node/subscribe.mjs", __dir__)
  BOOK = "https://example.com/books/1"

  class Test < Minitest::Test
    class << self
      # @return [RunningHub] in developer mode, shared by the tests of a class that do not stop it
      def hub
        @hub ||= RunningHub.new.tap { |hub| Minitest.after_run { hub.stop } }
      end
    end

    def setup
      @closing = []
    end

    def teardown
      @closing.reverse_each { |each| each.respond_to?(:close) ? each.close : each.stop }
    end

    # @param thing [#close, #stop] ended with the test
    def ending(thing)
      @closing << thing
      thing
    end

    # @return [RunningHub] for this test alone
    def start_hub(*flags, **options) = ending(RunningHub.new(*flags, **options))

    # @return [RunningHub] that believes tokens of AccessTokens, and nothing of developer mode
    def start_strict_hub(*flags, **options)
      start_hub("--no-dev", "--anonymous", "--issuer", AccessTokens::ISSUER, "--publisher-key", AccessTokens::SECRETS[:publisher],
        "--subscriber-key", AccessTokens::SECRETS[:subscriber], *flags, **options)
    end

    def run_client(*command, **options) = ending(ClientProcess.new(*command, **options))

    # The npm package's EventSource; prints a line of JSON for whatever happens to it.
    #
    # @param options [Hash] see test/support/node/subscribe.mjs
    # @return [ClientProcess]
    def run_node(**options)
      node, = skip_unless_available("node", npm: "eventsource")
      run_client(node, NODE_DRIVER, JSON.generate(options))
    end

    # @return [Array<Hash>] what a node client has said so far
    def said(client, happening = nil)
      client.lines.map { |line| JSON.parse(line) }.select { |line| happening.nil? || line["happening"] == happening }
    end

    # @return [Array<Hash>] so many events of a node client, waiting for them
    def node_events(client, count, seconds = 60)
      client.until(nil, seconds) { said_in(_1).size >= count }
      said(client, "event")
    end

    def said_in(output, happening = "event") = output.lines.select { |line| line.end_with?("\n") && line.include?(%("happening":"#{happening}")) }

    # @return [String] the URL of a subscription
    def subscription(hub, *topics, **parameters)
      "#{hub.url}?#{URI.encode_www_form(topics.map { |topic| [:match, topic] } + parameters.to_a)}"
    end

    # @return [EventStream] read by the test's own client
    def follow(hub, *topics, token: nil, headers: {}, **parameters)
      headers = headers.merge("authorization" => "Bearer #{token}") if token
      stream = HttpClient.new(hub.port).stream("GET", URI(subscription(hub, *topics, **parameters)).request_uri, headers: headers)
      assert_kind_of EventStream, stream, "no stream: #{stream.body unless stream.is_a?(EventStream)}"
      ending(stream)
    end

    # Waits for the block to give something.
    def eventually(what, seconds = 60)
      deadline = HttpClient.now + seconds
      until (value = yield)
        flunk("#{what} did not come in #{seconds} s") if HttpClient.now > deadline
        sleep 0.02
      end
      value
    end

    def free_port = FreePort.pick
  end
end
