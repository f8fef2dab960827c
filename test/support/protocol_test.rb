# frozen_string_literal: true

require "test_helper"
require "uri"
require_relative "hub_server"

# Tests of what the hub says and does on the wire, by sections of the specification.
module Protocol
  # What these tests have in common. Sections that are named are those of Mercure draft-08 unless another document is.
  class Test < Minitest::Test
    include AccessTokens

    FORM = {"content-type" => "application/x-www-form-urlencoded"}.freeze
    private_constant :FORM

    class << self
      # @return [Hash] settings of the hub that a class's tests share
      def settings(**settings)
        @settings = settings unless settings.empty?
        @settings || ((superclass == Test) ? {} : superclass.settings)
      end
    end

    def setup
      @streams = []
    end

    def teardown
      @streams.each(&:close)
      @own&.stop
    end

    # @return [HubServer]
    def server = @own || HubServer.shared(**self.class.settings)

    # A hub of this test's own.
    def start(**settings) = @own = HubServer.new(**self.class.settings, **settings)

    def client = server.client

    def hub = server.hub

    # @return [String] a topic that no other test uses
    def topic(name = "a")
      @prefix ||= "https://example.com/#{self.class.name.downcase.gsub(/\W+/, "-")}-#{rand(2**40).to_s(36)}/"
      "#{@prefix}#{name}"
    end

    # @param fields [Array<Array>, String] a String goes out as it is; or name them one by one
    # @return [HttpClient::Response]
    def post(fields = nil, token: publisher, headers: {}, **named)
      client.request("POST", server.path, headers: FORM.merge(bearer(token), headers), body: form(fields || named))
    end

    # @return [String] the event's id
    def publish(topics, data = "", token: publisher, **fields)
      fields = Array(topics).map { |topic| ["topic", topic] } + [["data", data]] + fields.map { |name, value| [name.to_s, value] }
      response = post(fields, token: token)
      assert_equal 200, response.status, response.body
      response.body
    end

    # @param parameters [Hash, Array<Array>, String] or name them one by one
    # @return [EventStream, HttpClient::Response]
    def subscribe(parameters = nil, token: nil, headers: {}, method: "GET", body: nil, **named)
      query = form(parameters || named)
      headers = FORM.merge(headers) if body
      stream = client.stream(method, query.empty? ? server.path : "#{server.path}?#{query}", headers: bearer(token).merge(headers), body: body && form(body))
      @streams << stream if stream.is_a?(EventStream)
      stream
    end

    # @return [EventStream] on these exact topics
    def follow(*topics, **options)
      stream = subscribe(topics.map { |topic| ["match", topic] }, **options)
      assert_equal 200, stream.status
      stream
    end

    # @return [HttpClient::Response]
    def get(target, token: nil, headers: {}, method: "GET") = client.request(method, target, headers: bearer(token).merge(headers))

    # @return [String] of one who may publish everything
    def publisher = @publisher ||= token(:publisher, "*")

    # @return [String]
    def subscriber(*topics, **options) = token(:subscriber, *topics, **options)

    def bearer(token) = token ? {"authorization" => "Bearer #{token}"} : {}

    def form(fields) = fields.is_a?(String) ? fields : URI.encode_www_form(fields.to_a)

    # A problem details document, one sentence and nothing from inside.
    def assert_problem(status, response, message = nil)
      assert_equal status, response.status, "#{message}: #{response.is_a?(EventStream) ? "a stream" : response.body}"
      assert_equal "application/problem+json", response["content-type"], message
      problem = response.json
      assert_equal status, problem["status"], message
      assert_kind_of String, problem["title"], message
      refute_empty problem["detail"], message
      refute_match(/\n|\.rb|backtrace|#<|0x\h{6}/, problem["detail"], message)
      problem["detail"]
    end

    # A refusal with a challenge (RFC 6750, section 3).
    #
    # @param error [String, nil] the code that it must have; nil: none
    def assert_challenge(status, error, response, message = nil)
      assert_problem(status, response, message)
      challenge = response["www-authenticate"]
      assert_match(/\ABearer\b/, challenge, message)
      code = challenge[/\berror="([^"]*)"/, 1]
      error ? assert_equal(error, code, message) : assert_nil(code, message)
      assert_includes challenge, %(resource_metadata="https://hub.example.com/.well-known/oauth-protected-resource/.well-known/mercure"), message
    end

    # Waits for what happens behind the answer, such as the end of a subscription.
    def eventually(seconds = 60)
      deadline = HttpClient.now + seconds
      until yield
        flunk "it has not come about in #{seconds} seconds" if HttpClient.now > deadline
        sleep 0.005
      end
    end

    # Nothing was published in between: the stream goes from one thing to the next.
    def assert_next(data, stream, message = nil) = assert_equal(data, stream.next.data, message)

    # What a stream has got so far, the end of it being marked by an update on one of its topics.
    def received(stream, topic)
      publish(topic, mark = "mark #{rand(2**40)}", token: publisher)
      stream.until(mark).map(&:data).grep_v(/\Amark /)
    end
  end
end
