# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"
require "support/misbehaving"

# Who has changed something, and then asks, is not given what was before.
class HTTPClientChangesTest < Minitest::Test
  HTTP = Hikyaku::HTTP
  private_constant :HTTP

  # What a GET of /held finds is decided when it comes, and told when the test lets it go.
  class Site < Misbehaving::WellBehaved
    attr_reader :gate, :came

    # @param answer [String] to what is not safe
    def initialize(answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      @version = 1
      @answer = answer
      @gate = Queue.new
      @came = Queue.new
    end

    def misbehave(connection, request)
      return change(connection) unless %w[GET HEAD].include?(request.method)
      return connection.write("HTTP/1.1 302 Found\r\nLocation: /held\r\nContent-Length: 0\r\n\r\n") if request.path == "/from"
      version = @version
      @came << request.path
      @gate.pop if request.path.start_with?("/held") && version == 1
      return connection.write("HTTP/1.1 302 Found\r\nLocation: /moved\r\nContent-Length: 0\r\n\r\n") if request.path == "/held-redirect" && version == 1
      connection.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nv#{version}")
    end

    def change(connection)
      @version = 2
      connection.write(@answer)
      connection.close if @answer.empty?
    end
  end
  private_constant :Site

  ANSWERS = {
    "was answered" => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "was refused" => "HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n", "got no answer" => "", "led elsewhere" => "HTTP/1.1 303 x\r\nLocation: /free\r\nContent-Length: 0\r\n\r\n"
  }.freeze
  private_constant :ANSWERS

  ANSWERS.each do |what, answer|
    %w[POST PUT PATCH DELETE].each do |method|
      test "after a #{method} that #{what} nobody joins a GET from before, and what that brings is not kept" do
        site(answer: answer) do |server, client, way|
          before = begun(client, server.url("/held"), way)
          outcome(client, method, server.url("/held"))
          after = client.get(server.url("/held"))
          assert_equal ["v2", false], [after.body, after.cached?]
          way.gate << true
          assert_equal "v1", before.value.body
          again = client.get(server.url("/held"))
          assert_equal ["v2", true], [again.body, again.cached?]
        end
      end
    end
  end

  test "what came first from before is not kept either" do
    site do |server, client, way|
      before = begun(client, server.url("/held"), way)
      client.post(server.url("/held"))
      way.gate << true
      assert_equal "v1", before.value.body
      after = client.get(server.url("/held"))
      assert_equal ["v2", false], [after.body, after.cached?]
    end
  end

  test "a stream from before is not kept" do
    site do |server, client, way|
      before = begun(client, server.url("/held"), way, :open)
      client.post(server.url("/held"))
      way.gate << true
      assert_equal "v1", before.read
      assert_equal "v2", client.get(server.url("/held")).body
    end
  end

  test "what the answer names of the same origin has changed as well, and nothing else has" do
    site(answer: "HTTP/1.1 201 Created\r\nLocation: /held?1\r\nContent-Location: http://other.example/held?2\r\nContent-Length: 0\r\n\r\n") do |server, client, way|
      befores = %w[/held?1 /held?2].map { |path| begun(client, server.url(path), way) }
      client.post(server.url("/list"))
      assert_equal "v2", client.get(server.url("/held?1")).body
      joined = client.fetch(server.url("/held?2"))
      2.times { way.gate << true }
      assert_equal %w[v1 v1 v1], [*befores, joined].map { |fetch| fetch.value.body }
      assert_equal [["v2", true], ["v1", true]], %w[/held?1 /held?2].map { |path| client.get(server.url(path)).then { |response| [response.body, response.cached?] } }
    end
  end

  test "a redirect from before is joined by nobody, and where it leads is asked after the change" do
    site do |server, client, way|
      before = begun(client, server.url("/held-redirect"), way)
      client.post(server.url("/held-redirect"))
      assert_equal server.url("/held-redirect"), client.get(server.url("/held-redirect")).url
      way.gate << true
      assert_equal [server.url("/moved"), "v2"], before.value.then { |response| [response.url, response.body] }
      assert_predicate client.get(server.url("/moved")), :cached?
    end
  end

  test "one that asked where a redirect led is joined by nobody after a change there" do
    site do |server, client, way|
      before = begun(client, server.url("/from"), way)
      client.post(server.url("/held"))
      assert_equal "v2", client.get(server.url("/from")).body
      way.gate << true
      assert_equal "v1", before.value.body
      assert_equal "v2", client.get(server.url("/held")).body
    end
  end

  test "what came before a redirect has changed: nobody joins, but where it led nothing has" do
    site do |server, client, way|
      before = begun(client, server.url("/from"), way)
      client.post(server.url("/from"))
      assert_equal "v2", client.get(server.url("/from")).body
      way.gate << true
      assert_equal "v1", before.value.body
    end
    site do |server, client, way|
      before = begun(client, server.url("/from"), way)
      client.post(server.url("/from"))
      way.gate << true
      assert_equal "v1", before.value.body
      assert_equal ["v1", true], client.get(server.url("/held")).then { |response| [response.body, response.cached?] }
    end
  end

  test "a change that is waited for no longer may have come about" do
    gate = Queue.new
    site do |server, client, way|
      before = begun(client, server.url("/held"), way)
      way.define_singleton_method(:change) { |_| gate.pop && nil }
      client.fetch(server.url("/held"), method: "POST", timeout: 0.2).outcome
      way.instance_variable_set(:@version, 2)
      assert_equal "v2", client.get(server.url("/held")).body
      2.times { way.gate << true }
      gate << true
      assert_equal "v1", before.value.body
    end
  end

  test "what changes nothing is shared as before" do
    site do |server, client, way|
      before = begun(client, server.url("/held"), way)
      client.post(server.url("/free"))
      joined = client.fetch(server.url("/held"))
      way.gate << true
      assert_equal %w[v1 v1], [before, joined].map { |fetch| fetch.value.body }
    end
  end

  private

  def site(**options)
    way = Site.new(**options)
    client = HTTP::Client.new(memory: nil, cache: true, proxy: nil, timeouts: {total: 10}, attended: true)
    Misbehaving.run(way) { |server| yield server, client, way }
  ensure
    client.close
  end

  # Until the server has decided what it says.
  def begun(client, url, way, how = :fetch)
    client.public_send(how, url).tap { way.came.pop }
  end

  def outcome(client, method, url) = client.fetch(url, method: method).outcome
end
