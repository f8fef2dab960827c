# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"

# Applications with more and with less of Rails than others, each in a process of its own.
class TurboSwitchTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  # What is said after it goes into the class, and what is said then is done.
  APPLICATION = <<~RUBY
    ENV["RAILS_ENV"] = "test"
    require "logger"
    require "rails"
    require "rack/mock"
    require "action_controller/railtie"
    %s
    require "hikyaku"
    class Tried < Rails::Application
      config.load_defaults Rails::VERSION::STRING.to_f
      config.root = Dir.mktmpdir
      config.eager_load = true
      config.secret_key_base = "k" * 64
      config.hosts.clear
      config.logger = Logger.new(IO::NULL)
      config.action_dispatch.show_exceptions = :none
      %s
    end
    class ApplicationController < %s; end
    Tried.initialize!
    Tried.routes.draw { hikyaku }
    def ask(method, path, **options) = Rack::MockResponse[*Tried.call(Rack::MockRequest.env_for("http://localhost" + path, method: method, "HTTP_HOST" => "localhost", **options))]
    def knock(*names) = ask("POST", "/hikyaku/streams", input: JSON.generate(names: names), "CONTENT_TYPE" => "application/json", "HTTP_ORIGIN" => "http://localhost")
    %s
  RUBY

  test "switched off, everything is turbo-rails' own" do
    assert_prints <<~TEXT, does: <<~RUBY, requires: %w[action_view/railtie active_job/railtie action_cable/engine turbo-rails], says: "config.action_cable.cable = {'adapter' => 'async'}"
      turbo-cable-stream-source
      "<turbo-stream action=\\"remove\\" target=\\"1\\"></turbo-stream>"
      0 recorded
      "x" for ever
      []
      No route matches
    TEXT
      puts ApplicationController.helpers.turbo_stream_from("x")[/<([a-z-]+)/, 1]
      heard, ready = Queue.new, Queue.new
      ActionCable.server.pubsub.subscribe("x", ->(text) { heard << text }, -> { ready << true })
      ready.pop
      Turbo::StreamsChannel.broadcast_remove_to("x", target: "1")
      puts JSON.parse(heard.pop).inspect
      puts "\#{Hikyaku::TestHelper.recorder.updates.size} recorded"
      puts Turbo::StreamsChannel.signed_stream_name("x").split("--").first.unpack1("m") + " for ever"
      puts [Turbo::Streams::Broadcasts, Turbo::Streams::StreamName, Turbo::StreamsHelper, ActionController::Base].flat_map(&:ancestors).grep(/Hikyaku::Turbo/).inspect
      knock("x") rescue puts $!.message[/No route matches/]
    RUBY
  end

  test "switched on where turbo-rails is not, the application says what it needs" do
    _, errors, status = run_application(says: "config.hikyaku.turbo = true")
    refute status.success?
    assert_match(/turbo-rails is not loaded: add `gem "turbo-rails"`/, errors)
  end

  test "an application without Turbo, jobs, a database and views has its hub" do
    assert_prints "401 nil\n", does: 'puts [ask("GET", "/.well-known/mercure").status, defined?(Turbo).inspect].join(" ")'
  end

  test "without Action Cable, jobs and a database, and with all code loaded before, streams go through the hub" do
    assert_prints <<~TEXT, does: <<~RUBY, requires: %w[action_view/railtie turbo-rails], says: "config.hikyaku.turbo = true"
      hikyaku-stream-source
      ["/turbo/streams/x"]
      200 ["/turbo/streams/x"]
    TEXT
      puts ApplicationController.helpers.turbo_stream_from("x")[/<([a-z-]+)/, 1]
      Turbo::StreamsChannel.broadcast_remove_to("x", target: "1")
      puts Hikyaku::TestHelper.recorder.updates.last.topics.inspect
      answer = knock(Turbo::StreamsChannel.signed_stream_name("x"))
      puts "\#{answer.status} \#{JSON.parse(answer.body)["topics"].values}"
    RUBY
  end

  test "an application without sessions gives tokens too" do
    assert_prints <<~TEXT, does: <<~RUBY, requires: %w[action_view/railtie turbo-rails], says: "config.hikyaku.turbo = true; config.api_only = true; config.hikyaku.turbo_path = '/live'", controller: "ActionController::API"
      200 anonymous
      the same
      404
    TEXT
      asking = {input: JSON.generate(names: [Turbo::StreamsChannel.signed_stream_name("x")]), "CONTENT_TYPE" => "application/json"}
      answer = ask("POST", "/live", **asking)
      again = ask("POST", "/live", "HTTP_COOKIE" => answer["set-cookie"][/[^;]+/], **asking)
      first, second = [answer, again].map { |each| JWT.decode(JSON.parse(each.body)["token"], nil, false).first["sub"] }
      puts [answer.status, first[/[a-z]+/]].join(" ")
      puts((first == second) ? "the same" : "another")
      puts (knock("x") rescue 404).then { |status| status.is_a?(Integer) ? status : status.status }
    RUBY
  end

  private

  def assert_prints(text, **parts)
    output, errors, status = run_application(**parts)
    assert status.success?, errors
    assert_equal text, output, errors
  end

  def run_application(does: "", requires: [], says: "", controller: "ActionController::Base")
    script = format(APPLICATION, requires.map { |name| "require \"#{name}\"" }.join("\n"), says, controller, does)
    Open3.capture3(RbConfig.ruby, "-I#{ROOT}/lib", "-rtmpdir", "-e", script)
  end
end
