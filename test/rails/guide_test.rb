# frozen_string_literal: true

require "test_helper"
require "cgi"
require "support/http_client"
require "support/rails_server"
require "support/snippets"

# What docs/guides/rails.md says to write into an application works there.
class GuideTest < Minitest::Test
  PATH = "/.well-known/mercure"
  ROOT_ROUTE = "  root to: ->(_env) { [200, {}, ['root']] }\n  resource :session\n  get '/books.json', to: ->(_env) { [200, {}, []] }\n"

  def setup
    @files = Snippets.files("docs/guides/rails.md")
    assert_operator @files.size, :>=, 7
  end

  def teardown
    @server&.stop
    @folder&.remove
  end

  test "the snippets make an application that is live" do
    serve(@files.merge("config/routes.rb" => @files["config/routes.rb"].sub("  hikyaku\n", "  hikyaku\n#{ROOT_ROUTE}")))
    page = @server.get("/books/1", {"host" => "localhost"})
    assert_includes page["link"], %(<https://www.example.com#{PATH}>; rel="mercure")
    hub = URI(CGI.unescapeHTML(page.body[/data-hub="([^"]+)"/, 1]))
    client = HttpClient.new(@server.port)
    stream = client.stream("QUERY", hub.request_uri, headers: {"host" => "localhost"})
    client.request("PATCH", "/books/1?stock=3", headers: {"host" => "localhost"})
    assert_equal %({"stock":"3"}), stream.next.data

    cookie = client.request("POST", "/session", headers: {"host" => "localhost"}).headers.filter_map { |name, value| value[/\A__Secure-[^;]+/] if name == "set-cookie" }.first
    mine = client.stream("GET", "#{PATH}?match=/users/7/messages", headers: {"host" => "localhost", "cookie" => cookie})
    client.request("POST", "/session", headers: {"host" => "localhost"})
    assert_equal "for your eyes only", mine.next.data
    client.request("DELETE", "/session", headers: {"host" => "localhost"})
    assert_empty mine.rest
  ensure
    [stream, mine].compact.each(&:close)
  end

  test "the application's test passes" do
    @folder = RailsServer::Folder.new(@files.slice("test/book_test.rb"))
    output, status = @folder.run("bundle", "exec", "ruby", "test/book_test.rb", RAILS_ENV: "test")
    assert status.success?, output
    assert_match(/1 runs, 4 assertions/, output)
  end

  private

  def serve(files)
    # Forms of the guide have no token against forgery, and its controllers no views but one.
    without = {"config/initializers/forgery.rb" => "Rails.application.config.action_controller.allow_forgery_protection = false\n"}
    @folder = RailsServer::Folder.new(files.merge(without))
    @server = RailsServer.new(@folder)
  end
end
